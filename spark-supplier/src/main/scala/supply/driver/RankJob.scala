package supply.driver

import java.util.UUID

import org.apache.spark.{SparkContext, SparkException}
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart}

import supply.core.SupplyException
import supply.plan.Hostfile

/**
 * A job with one task for each rank. It fails with the first cause, and never waits for executors
 * that do not come ([[TaskWatch]]).
 *
 * @param timeout how long a rank may be without a task, in seconds
 * @param stopCause why a task stopped without a failure that Spark counts, by Spark's number of the
 *   task
 */
private[supply] final class RankJob(sc: SparkContext, hosts: Hostfile, timeout: Double,
    description: String, stopCause: Long => Option[SupplyException] = _ => None)
    extends SparkListener {
  private val group = s"supply-${UUID.randomUUID()}"
  @volatile private var firstFailure: Option[SupplyException] = None

  /**
   * Runs `body`, which starts the job and waits for it.
   *
   * @throws SupplyException the first cause, if the job fails
   */
  def run[A](body: => A): A = {
    val watch = new TaskWatch(sc, group, hosts, timeout, fail, stopCause)
    Seq(this, watch).foreach(sc.addSparkListener)
    try JobGroup(sc, group, description) {
        firstFailure.foreach(throw _)
        body
      }
    catch { case e: SparkException => throw firstFailure.getOrElse(RankJob.causeOf(e)) }
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

private[supply] object RankJob {
  /** The SupplyException that a task threw, or `e` itself. */
  def causeOf(e: Throwable): Throwable =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null)
      .collectFirst { case known: SupplyException => known }.getOrElse(e)
}
