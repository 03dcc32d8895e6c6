package supply.task

import org.apache.spark.{TaskKilled, TaskKilledException}

/**
 * A task that has landed on another node than its rank's. It ends without counting as a failure of Spark's, so that it is placed
 * again; the driver counts.
 */
private[task] object Misplaced {

  /** How often in a row a rank's task may land elsewhere. */
  final val Limit = 10

  private final val Mark = "supply-misplaced: "

  /** Ends the task, after a moment: the right node may have no executor yet. All of them together take the time limit. */
  def end(message: String, timeout: Double): Nothing = {
    Thread.sleep((timeout * 1000 / Limit).toLong)
    throw new TaskKilledException(Mark + message)
  }

  /** Its message, where a task has ended so. */
  def message(reason: TaskKilled): Option[String] =
    if (reason.reason.startsWith(Mark)) Some(reason.reason.stripPrefix(Mark)) else None
}
