package supply.executor

import org.apache.spark.{TaskContext, TaskKilledException}

import supply.core.{DriverCalls, MisplacedException}

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
