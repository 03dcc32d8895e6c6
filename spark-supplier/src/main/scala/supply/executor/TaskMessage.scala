package supply.executor

import supply.core.SupplyException

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
