package supply.driver

import java.util.UUID

import org.apache.spark.{SparkContext, SparkException}
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart}

import supply.core.{FailureText, JobGroup, SupplierEndedException, SupplyException}

/**
 * A job with one task for each place. It fails with the first cause, or if a place has had no task
 * for `timeout` seconds ([[TaskWatch]]).
 */
private[supply] final class PlacedJob(sc: SparkContext, places: WatchedPlaces, timeout: Double,
    description: String, stopCause: Long => Option[SupplyException] = _ => None)
    extends SparkListener {
  private val group = s"supply-${UUID.randomUUID()}"
  @volatile private var firstFailure: Option[SupplyException] = None

  /** Runs `body`, which starts the job and waits for it. Throws the first cause if it fails. */
  def run[A](body: => A): A = {
    val watch = new TaskWatch(sc, group, places, timeout, fail, stopCause)
    Seq(this, watch).foreach(sc.addSparkListener)
    try JobGroup(sc, group, description) {
        firstFailure.foreach(throw _)
        body
      }
    catch { case e: SparkException => throw firstFailure.getOrElse(PlacedJob.causeOf(e)) }
    finally {
      Seq(this, watch).foreach(sc.removeSparkListener)
      watch.close()
    }
  }

  /** Stops the job, for that reason unless it already has one. */
  def fail(cause: SupplyException): Unit = synchronized {
    if (firstFailure.isEmpty) {
      firstFailure = Some(cause)
      sc.cancelJobGroup(group)
    }
  }

  /** Spark does not cancel jobs that are not submitted yet. */
  override def onJobStart(start: SparkListenerJobStart): Unit =
    if (firstFailure.isDefined) sc.cancelJobGroup(group)
}

private[supply] object PlacedJob {
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
