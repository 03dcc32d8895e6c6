package supply.driver

import scala.collection.mutable
import scala.concurrent.{Await, ExecutionContext, Future, Promise}
import scala.concurrent.duration.DurationDouble

import org.apache.spark.SparkContext
import org.apache.spark.supply.SparkInternals

import supply.pair.ConfigFiles
import supply.plan.Hostfile

/**
 * Tells the ranks that Spark has given up, and why: a small job with a task for each executor,
 * which tells every rank of its node. So the ranks of a node hear of it as long as one executor
 * there is well, and all at once.
 */
object FailureDelivery {

  /**
   * What starting the tasks may take. Where no executor is left they would wait for one for ever.
   */
  private val startSeconds = 10.0

  /** Goes on in the thread that has ended a future: there is next to nothing to do. */
  private val sameThread: ExecutionContext = ExecutionContext.fromExecutor(_.run())

  /**
   * @param run
   *   number of the run that has failed
   * @param attached
   *   the ranks whose pairs had a task of this run: where there is no living rank any more, none is
   *   to come
   * @param wait
   *   seconds to wait for ranks that are not there yet, while none has been there at all
   */
  def deliver(
      sc: SparkContext,
      configFiles: ConfigFiles,
      hosts: Hostfile,
      run: Long,
      attached: Set[Int],
      text: String,
      wait: Double): Unit = {
    val end = System.currentTimeMillis() + (wait * 1000).toLong
    val notices = new NodeNotices(configFiles, hosts, run, attached, text, end)
    val want = NodeNotices.want(sc, run)
    val open = mutable.Set(hosts.places.indices: _*)
    val oneWasThere, allAreDone = Promise[Unit]()
    def done(node: NodeNotices.Outcome): Unit = synchronized {
      open --= node.ranks
      if (node.anyWasThere) oneWasThere.trySuccess(())
      if (open.isEmpty) allAreDone.trySuccess(())
    }
    val executors = SparkInternals.executors(sc)
    val job = sc.submitJob(sc.makeRDD(0 until executors, executors),
      (_: Iterator[Int]) => notices.deliver(), 0 until executors,
      (_: Int, node: NodeNotices.Outcome) => done(node), ())
    def await(end: Future[Unit], seconds: Double): Unit = {
      Await.ready(Future.firstCompletedOf(Seq(job, end))(sameThread), seconds.seconds)
      ()
    }
    // A task on an executor that stalls never ends: another one of that node is enough.
    try {
      await(Future.firstCompletedOf(Seq(oneWasThere.future, allAreDone.future))(sameThread),
        wait + startSeconds)
      await(allAreDone.future, NodeNotices.othersSeconds + startSeconds)
    } finally {
      want.close()
      job.cancel()
    }
  }
}
