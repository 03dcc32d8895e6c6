package supply.task

import org.apache.spark.{SparkContext, TaskContext}

import supply.SupplyException
import supply.config.ConfigFiles
import supply.plan.Hosts

/** Tells the ranks that Spark has given up, and why: one small pinned job that attaches to each pair. */
object FailureDelivery {

  /**
   * @param wait seconds to wait for each rank
   * @return ranks that were told
   */
  def deliver(sc: SparkContext, configFiles: ConfigFiles, hosts: Hosts, text: String, wait: Double): Int = {
    val targets = hosts.places.zipWithIndex.map { case (place, rank) => rank -> place.host.toSeq }
    sc.makeRDD(targets).map { rank =>
      try {
        val pair = PinnedTask.attach(configFiles, hosts, rank, TaskContext.get().attemptNumber(), wait)
        try pair.fail(text)
        finally pair.close()
        1
      } catch {
        // A rank that is not there can not be told; the first cause matters, not this one.
        case _: SupplyException => 0
      }
    }.sum().toInt
  }
}
