package supply.executor

import scala.util.control.NonFatal

import org.apache.spark.util.LongAccumulator
import org.apache.spark.{SparkContext, TaskContext, TaskKilledException}

import supply.core.{DriverCalls, MisplacedException, SupplyException}

/** What a task reports to the driver, or asks it. */
sealed trait TaskMessage extends java.io.Serializable

object TaskMessage {
  /** The task has attached to the pair of this rank. */
  final case class Attached(rank: Int) extends TaskMessage

  /** The rank has received everything. */
  final case class Ended(report: TaskReport) extends TaskMessage

  /** Asks for the report of an attempt whose rank has received everything: Option[TaskReport]. */
  final case class ReportOf(rank: Int) extends TaskMessage

  /** Asks whether ranks may still need data: Boolean. */
  case object IsWanted extends TaskMessage
  /** A rank gets elements in its first epoch. */
  case object Elements extends TaskMessage

  /**
   * This rank gets no element in its first epoch. Asks whether that is true of all ranks:
   * Option[Boolean], None as long as no rank has got any.
   */
  final case class NoElements(rank: Int) extends TaskMessage

  /** The task of this rank with Spark's number `task` stops without a failure that Spark counts. */
  final case class Stopped(rank: Int, task: Long, cause: SupplyException) extends TaskMessage
}

/**
 * What one rank has received since it opened its pair. Elements and bytes of blocks are those of
 * all attempts of its task; partitions and times (in nanoseconds) are those of the last attempt.
 */
final case class TaskReport(
    rank: Int,
    host: String,
    partitions: Int,
    elements: Long,
    bytes: Long,
    nanos: Long,
    waitedForRank: Long,
    waitedForSource: Long)

object TaskReport {
  def nothing(rank: Int, host: String): TaskReport = TaskReport(rank, host, 0, 0, 0, 0, 0, 0)
}

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

/** What a task on a wrong node does. */
private[supply] object Misplaced {
  /** Asks the driver whether a task of this partition of a stage may land on a wrong node once more. */
  final case class MayMove(stage: Int, partition: Int)

  /** How often a task may land on a wrong node. */
  final val Limit = 10

  /** How long it keeps the slot of the wrong node: Spark would try it there again at once. */
  final val waitSeconds = 1

  /**
   * Ends the task, so that Spark tries it again: the right node may have no executor or no free core
   * yet, or this is a speculative copy. Spark does not count the first ones as failures.
   */
  def stop(driver: DriverCalls, text: String): Nothing = {
    Thread.sleep(waitSeconds * 1000L)
    val task = TaskContext.get()
    if (driver.ask[Boolean](MayMove(task.stageId(), task.partitionId())))
      throw new TaskKilledException(text)
    throw new MisplacedException(text)
  }
}

/** How tasks tell the driver that no retry can mend their error: their job then fails at once. */
private[supply] final class HopelessErrors(driver: DriverCalls) extends Serializable {
  import HopelessErrors._

  def reported[A](work: => A): A =
    try work
    catch {
      case e: SupplyException if !e.retry =>
        // Without an answer, Spark tries the task again, which fails in the same way.
        try driver.ask[Unit](HopelessError(TaskContext.get().taskAttemptId(), e))
        catch { case NonFatal(_) => () }
        throw e
    }
}

private[supply] object HopelessErrors {
  /** Of the task with Spark's number `task`. */
  final case class HopelessError(task: Long, cause: SupplyException)
}
