package supply.task

import scala.util.control.NonFatal

import org.apache.spark.{TaskContext, TaskKilledException}

import supply.core.{DriverCalls, MisplacedException, PairHeldException, PlacementException, SupplyException}

/**
 * How a task that belongs to one place tells the driver why it ends early; its partition is its
 * place. `driver` answers [[TaskMessage.Ends]]. `pauseMillis`: how long a task keeps the slot of a
 * wrong node, because Spark would try it there again at once.
 */
private[supply] final class PlacedTask(val driver: DriverCalls, pauseMillis: Long)
    extends Serializable {
  def apply[A](work: => A): A =
    try work
    catch {
      case e: MisplacedException =>
        // The right node may have no executor or no free core yet, or this is a speculative copy.
        Thread.sleep(pauseMillis)
        stop(e)
      case e: PairHeldException => stop(e)
      case e: SupplyException if !e.retry =>
        // Without an answer, Spark tries the task again, which fails in the same way.
        try ends(e)
        catch { case NonFatal(_) => () }
        throw e
    }

  /** Spark does not count the end of a killed task as a failure, and tries the task again. */
  private def stop(cause: SupplyException): Nothing =
    if (ends(cause)) throw new TaskKilledException(cause.getMessage)
    else throw new PlacementException(cause.getMessage)

  private def ends(cause: SupplyException): Boolean = {
    val task = TaskContext.get()
    driver.ask[Boolean](
      TaskMessage.Ends(task.stageId(), task.partitionId(), task.taskAttemptId(), cause))
  }
}

private[supply] object PlacedTask {
  /** How often in a row a task may land on a wrong node. */
  final val Limit = 10

  /** [[PlacedTask.pauseMillis]] of a task that nobody feeds meanwhile. */
  final val ShortPauseMillis = 1000L
}
