package supply.executor

import scala.util.control.NonFatal

import org.apache.spark.TaskContext

import supply.core.{DriverCalls, SupplyException}

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
