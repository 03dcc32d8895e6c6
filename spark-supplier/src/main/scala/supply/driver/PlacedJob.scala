package supply.driver

import java.util.UUID

import org.apache.spark.{SparkContext, SparkException}
import org.apache.spark.rdd.RDD
import org.apache.spark.supply.{DriverEndpoint, SchedulerState}

import supply.core.{FailureText, JobGroup, SupplierEndedException, SupplyException, Threads}
import supply.executor.{HopelessErrors, TaskMessage}

/**
 * A job with one task for each place. It fails with the first cause, or if a place has had no task
 * for `timeout` seconds ([[TaskWatch]]). `data`: what its tasks read, if Spark must compute it first.
 */
private[supply] final class PlacedJob(sc: SparkContext, places: WatchedPlaces, timeout: Double,
    description: String, data: Option[RDD[_]] = None) {
  private val group = s"supply-${UUID.randomUUID()}"
  private lazy val inFront = data.fold(Set.empty[Int])(SchedulerState.shufflesOf)
  private val watch =
    new TaskWatch(sc, places, timeout, () => SchedulerState.stages(sc, group, inFront), fail)
  @volatile private var firstFailure: Option[SupplyException] = None

  /**
   * Runs `body`, which starts the job and waits for it; its tasks report their errors to its argument.
   * Throws the first cause if it fails.
   */
  def run[A](body: HopelessErrors => A): A = {
    val endpoint = new DriverEndpoint(sc, group)({
      case HopelessErrors.HopelessError(task, cause) => if (!watch.isCopy(task)) fail(cause)
    })
    val timer = Threads.repeat("supply-task-watch", PlacedJob.periodMillis,
      PlacedJob.periodMillis)(check())
    try JobGroup(sc, group, description) {
        firstFailure.foreach(throw _)
        body(new HopelessErrors(endpoint.calls))
      }
    catch { case e: SparkException => throw firstFailure.getOrElse(PlacedJob.causeOf(e)) }
    finally {
      timer.close()
      endpoint.close()
    }
  }

  /** Stops the job, for that reason unless it already has one. */
  def fail(cause: SupplyException): Unit = synchronized {
    if (firstFailure.isEmpty) {
      firstFailure = Some(cause)
      sc.cancelJobGroup(group)
    }
  }

  /** A task has stopped without a failure that Spark counts. */
  def stopped(task: TaskMessage.Stopped): Unit = watch.stopped(task.rank, task.task, task.cause)

  /** Spark does not cancel jobs that are not submitted yet. */
  private def check(): Unit =
    if (firstFailure.isDefined) sc.cancelJobGroup(group) else watch.check()
}

private[supply] object PlacedJob {
  private val periodMillis = 1000L

  /** The SupplyException that a task threw or that a cancelled job stands for, or `e` itself. */
  def causeOf(e: Throwable): Throwable =
    FailureText.causes(e).collectFirst {
      case known: SupplyException => known
      case spark: SparkException if isCancelled(spark.getMessage) =>
        new SupplierEndedException("Spark's job was cancelled before its end")
    }.getOrElse(e)

  private def isCancelled(message: String): Boolean = message match {
    case Cancelled() => true
    case _ => false
  }

  /** As Spark 4 and Spark 3.5 say it, but not of a job that ends with its SparkContext. */
  private val Cancelled =
    """(?s)(?:\[SPARK_JOB_CANCELLED\] )?Job \d+ cancelled (?!because SparkContext).*""".r
}
