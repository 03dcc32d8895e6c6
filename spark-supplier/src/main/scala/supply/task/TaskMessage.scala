package supply.task

import org.apache.spark.SparkContext
import org.apache.spark.util.LongAccumulator

import supply.core.SupplyException

/** What a task reports to the driver, or asks it. An extension has questions of its own. */
private[supply] sealed trait TaskMessage extends java.io.Serializable

private[supply] object TaskMessage {
  /**
   * The task with Spark's number `task`, of that place, ends with this error. Boolean: Spark may try it
   * again, and counts no failure.
   */
  final case class Ends(stage: Int, place: Int, task: Long, cause: SupplyException)
      extends TaskMessage

  /** The task has attached to the pair of this rank. */
  final case class Attached(rank: Int) extends TaskMessage

  /** The task with Spark's number `task` waits there for this rank to connect. */
  final case class Waits(rank: Int, task: Long, address: String) extends TaskMessage

  /** That host keeps a result of this rank. */
  final case class Keeps(rank: Int, host: String, name: String) extends TaskMessage

  /** The rank has received everything. */
  final case class Ended(report: TaskReport) extends TaskMessage

  /** Asks for the report of an attempt whose rank has received everything: Option[TaskReport]. */
  final case class ReportOf(rank: Int) extends TaskMessage

  /** Asks whether ranks may still need data, or the news that there is none: Boolean. */
  case object IsWanted extends TaskMessage

  /** A rank gets elements in its first epoch. */
  case object Elements extends TaskMessage

  /**
   * This rank gets no element in its first epoch. Asks whether that is true of all ranks:
   * Option[Boolean], None as long as no rank has got any.
   */
  final case class NoElements(rank: Int) extends TaskMessage
}

/**
 * What one rank has received since it opened its pair. Elements and bytes of blocks are those of
 * all attempts of its task; partitions and times (in nanoseconds) are those of the last attempt.
 */
private[supply] final case class TaskReport(
    rank: Int,
    host: String,
    partitions: Int,
    elements: Long,
    bytes: Long,
    nanos: Long,
    waitedForRank: Long,
    waitedForSource: Long)

private[supply] object TaskReport {
  def nothing(rank: Int, host: String): TaskReport = TaskReport(rank, host, 0, 0, 0, 0, 0, 0)
}

/** What the tasks have done so far, for the driver's progress and for each task in Spark's UI. */
private[supply] final class TaskCounters(sc: SparkContext) extends java.io.Serializable {
  /** Of published blocks, like the bytes. */
  val elements: LongAccumulator = sc.longAccumulator("supply.elements")
  val bytes: LongAccumulator = sc.longAccumulator("supply.bytes")

  /** Completely supplied ones, counted in each epoch. */
  val partitions: LongAccumulator = sc.longAccumulator("supply.partitions")
  val millisWaitedForRank: LongAccumulator = sc.longAccumulator("supply.ms waited for the rank")
  val millisWaitedForSource: LongAccumulator = sc.longAccumulator("supply.ms waited for the source")
}
