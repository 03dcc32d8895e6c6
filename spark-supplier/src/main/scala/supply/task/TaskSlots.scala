package supply.task

import org.apache.spark.SparkContext
import org.apache.spark.supply.SparkInternals

import supply.PlacementException

/** Every rank's task must run at the same time as all others, or the ranks wait for each other for ever. */
object TaskSlots {

  private val pollMillis = 100L

  /** Waits until the executors that are coming have come, at most `timeout` seconds. */
  def require(sc: SparkContext, ranks: Int, timeout: Double): Unit = {
    val end = System.nanoTime() + (timeout * 1e9).toLong
    while (SparkInternals.concurrentTasks(sc) < ranks && !sc.isLocal && System.nanoTime() < end) Thread.sleep(pollMillis)
    val slots = SparkInternals.concurrentTasks(sc)
    if (slots < ranks) {
      throw new PlacementException(s"$ranks ranks need $ranks tasks at once, but Spark (${sc.master}) has slots for $slots: " +
        (if (sc.isLocal) s"use --master local[$ranks]" else "raise --num-executors or --executor-cores, or lower spark.task.cpus"))
    }
  }
}
