package supply.failure

import java.util.concurrent.TimeoutException

import scala.collection.mutable
import scala.concurrent.{Await, Future, Promise}
import scala.concurrent.duration.DurationDouble

import org.apache.spark.SparkContext
import org.apache.spark.supply.{DriverEndpoint, SparkInternals}

import supply.core.{JobGroup, PlacementException, Threads}
import supply.pair.ConfigFiles
import supply.plan.Hostfile

/** Notifies all ranks that Spark failed, by a job: each executor notifies all ranks of its node. */
private[supply] object FailureBroadcast {
  /** How long Spark may take to start the tasks: without executors it waits for ever. */
  private val startSeconds = 10.0

  /**
   * Returns when each node has notified its ranks. Waits at most `wait` seconds for the first rank,
   * and not for one of `attached` (it had a task of this run) that has exited. Throws a
   * TimeoutException if no rank came, a PlacementException if a node with ranks ran no task, and the
   * job's own error. Removes the resident files of the run from `residentFolder`.
   */
  def send(sc: SparkContext, configFiles: ConfigFiles, hosts: Hostfile, run: Long,
      attached: Set[Int], text: String, wait: Double,
      residentFolder: Option[String] = None): Unit =
    JobGroup(sc, s"supply-failure-${run.toHexString}", "notifying the ranks that Spark failed") {
      broadcast(sc, configFiles, hosts, run, attached, text, wait, residentFolder)
    }

  private def broadcast(sc: SparkContext, configFiles: ConfigFiles, hosts: Hostfile, run: Long,
      attached: Set[Int], text: String, wait: Double, residentFolder: Option[String]): Unit = {
    val endpoint = new DriverEndpoint(sc, s"supply-failure-${run.toHexString}")({
      case NodeFailureTask.IsWanted => true
    })
    val node = new NodeFailureTask(configFiles, hosts, run, attached, text, wait,
      residentFolder, endpoint.calls)
    val open = mutable.Set(hosts.places.indices: _*)
    val oneWasThere, allAreDone = Promise[Unit]()
    def done(outcome: NodeFailureTask.Outcome): Unit = synchronized {
      open --= outcome.ranks
      if (outcome.anyWasThere) oneWasThere.trySuccess(())
      if (open.isEmpty) allAreDone.trySuccess(())
    }
    val executors = locations(sc)
    val job = sc.submitJob(sc.makeRDD(executors.map(() -> _)),
      (_: Iterator[Unit]) => node.execute(), executors.indices,
      (_: Int, outcome: NodeFailureTask.Outcome) => done(outcome), ())
    def await(end: Future[Unit], seconds: Double): Unit = {
      Await.ready(Future.firstCompletedOf(Seq(job, end))(Threads.completing), seconds.seconds)
      ()
    }
    // A task on an executor that is stuck never ends: another task of its node is enough.
    try {
      await(Future.firstCompletedOf(Seq(oneWasThere.future, allAreDone.future))(Threads.completing),
        wait + startSeconds)
      try await(allAreDone.future, NodeFailureTask.othersSeconds + startSeconds)
      catch { case _: TimeoutException => () } // What is missing has ranks, which are named below.
      job.value.foreach(_.get)
      val missed = synchronized(open.toSeq.sorted)
      if (missed.nonEmpty) throw new PlacementException(
        s"no executor has run a task to its end on the nodes of ranks ${missed.mkString(", ")}")
    } finally {
      endpoint.close()
      job.cancel()
    }
  }

  /** One for each executor, whose cores killed tasks may still hold: others may be free sooner. */
  private def locations(sc: SparkContext): Seq[Seq[String]] = {
    val executors = SparkInternals.executorSlots(sc).map(SparkInternals.location)
    if (executors.isEmpty) Seq(Nil) else executors.map(Seq(_))
  }
}
