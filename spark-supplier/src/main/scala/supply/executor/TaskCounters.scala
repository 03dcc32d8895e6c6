package supply.executor

import org.apache.spark.SparkContext
import org.apache.spark.util.LongAccumulator

/** What the tasks have done so far, for the driver's progress and for each task in Spark's UI. */
final class TaskCounters(sc: SparkContext) extends java.io.Serializable {
  /** Of published blocks, like the bytes. */
  val elements: LongAccumulator = sc.longAccumulator("supply.elements")
  val bytes: LongAccumulator = sc.longAccumulator("supply.bytes")

  /** Completely supplied ones, counted in each epoch. */
  val partitions: LongAccumulator = sc.longAccumulator("supply.partitions")
  val millisWaitedForRank: LongAccumulator = sc.longAccumulator("supply.ms waited for the rank")
  val millisWaitedForSource: LongAccumulator = sc.longAccumulator("supply.ms waited for the source")
}
