package supply.task

import scala.concurrent.Await
import scala.concurrent.duration.DurationDouble

import org.apache.spark.{SparkContext, TaskContext}

import supply.SupplyException
import supply.config.ConfigFiles
import supply.plan.Hosts

/** Tells the ranks that Spark has given up, and why: one small pinned job that attaches to each pair. */
object FailureDelivery {

  /** What starting the tasks may take. Where no executor is left they would wait for one for ever. */
  private val startSeconds = 10.0

  /** What a living rank may take to make room in a full notification pipe. */
  private val roomSeconds = 2.0

  /**
   * @param wait seconds to wait for ranks that are not there yet, all of them together: there may be fewer task slots than
   *             ranks
   */
  def deliver(sc: SparkContext, configFiles: ConfigFiles, hosts: Hosts, text: String, wait: Double): Unit = {
    val end = System.currentTimeMillis() + (wait * 1000).toLong
    val targets = hosts.places.zipWithIndex.map { case (place, rank) => rank -> place.host.toSeq }
    val delivery = sc.makeRDD(targets).foreachAsync { rank =>
      try {
        val left = math.max(0.0, (end - System.currentTimeMillis()) / 1000.0)
        val pair = PinnedTask.attach(configFiles, hosts, rank, TaskContext.get().attemptNumber(), roomSeconds, Some(left))
        try pair.fail(text)
        finally pair.close()
      } catch {
        // A rank that is not there can not be told; the first cause matters, not this one.
        case _: SupplyException => ()
      }
    }
    try Await.result(delivery, (wait + startSeconds).seconds)
    finally delivery.cancel()
  }
}
