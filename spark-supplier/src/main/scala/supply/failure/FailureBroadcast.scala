package supply.failure

import scala.collection.mutable
import scala.concurrent.{Await, Future, Promise}
import scala.concurrent.duration.DurationDouble

import org.apache.spark.SparkContext
import org.apache.spark.supply.DriverEndpoint

import supply.core.Threads
import supply.pair.ConfigFiles
import supply.plan.Hostfile

/** Notifies all ranks that Spark failed, by a job: each executor notifies all ranks of its node. */
private[supply] object FailureBroadcast {
  /** How long Spark may take to start the tasks: without executors it waits for ever. */
  private val startSeconds = 10.0

  /**
   * Returns when all ranks are notified; waits `wait` seconds for the first one to come, but not
   * for one of `attached` (it had a task of this run) that is gone. Throws a TimeoutException after
   * that. Removes the resident files of the run from `residentFolder`.
   */
  def send(sc: SparkContext, configFiles: ConfigFiles, hosts: Hostfile, run: Long,
      attached: Set[Int], text: String, wait: Double,
      residentFolder: Option[String] = None): Unit = {
    val end = System.currentTimeMillis() + (wait * 1000).toLong
    val endpoint = new DriverEndpoint(sc, s"supply-failure-${run.toHexString}")({
      case NodeFailureTask.IsWanted => true
    })
    val node = new NodeFailureTask(configFiles, hosts, run, attached, text, end,
      residentFolder, endpoint.calls)
    val open = mutable.Set(hosts.places.indices: _*)
    val oneWasThere, allAreDone = Promise[Unit]()
    def done(outcome: NodeFailureTask.Outcome): Unit = synchronized {
      open --= outcome.ranks
      if (outcome.anyWasThere) oneWasThere.trySuccess(())
      if (open.isEmpty) allAreDone.trySuccess(())
    }
    // In local mode the driver is the executor.
    val executors = math.max(1, sc.getExecutorMemoryStatus.size - 1)
    val job = sc.submitJob(sc.makeRDD(0 until executors, executors),
      (_: Iterator[Int]) => node.execute(), 0 until executors,
      (_: Int, outcome: NodeFailureTask.Outcome) => done(outcome), ())
    def await(end: Future[Unit], seconds: Double): Unit = {
      Await.ready(Future.firstCompletedOf(Seq(job, end))(Threads.completing), seconds.seconds)
      ()
    }
    // A task on an executor that is stuck never ends: another task of its node is enough.
    try {
      await(Future.firstCompletedOf(Seq(oneWasThere.future, allAreDone.future))(Threads.completing),
        wait + startSeconds)
      await(allAreDone.future, NodeFailureTask.othersSeconds + startSeconds)
    } finally {
      endpoint.close()
      job.cancel()
    }
  }
}
