package supply.task

import org.apache.spark.{ExceptionFailure, SparkContext, SparkException}
import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}

import supply.SupplyException
import supply.plan.Plan
import supply.source.Source

/** Runs one task per rank, all at once, for the whole run. */
final class PinnedJob(sc: SparkContext, source: Source, plan: Plan, settings: TaskSettings) {
  private val group = s"supply-${java.util.UUID.randomUUID()}"
  private val elements = sc.longAccumulator("supply.elements")
  private val bytes = sc.longAccumulator("supply.bytes")

  def elementsId: Long = elements.id

  def bytesId: Long = bytes.id

  /** The reports, by rank. Throws the first cause of a failure. */
  def run(): IndexedSeq[TaskReport] = {
    val failures = new FirstFailure
    sc.addSparkListener(failures)
    try {
      // Interrupting wakes a task that waits for its rank.
      sc.setJobGroup(group, s"supplying ${plan.ranks} ranks", interruptOnCancel = true)
      val task = new PinnedTask(settings, elements, bytes)
      new PinnedRDD(sc, source, plan, settings.hosts)
        .mapPartitionsWithIndex((rank, epochs) => Iterator.single(task.run(rank, epochs)))
        .collect()
        .toIndexedSeq
    } catch {
      case e: SparkException => throw failures.first.getOrElse(PinnedJob.causeOf(e))
    } finally {
      sc.clearJobGroup()
      sc.removeSparkListener(failures)
    }
  }

  /** Ends the job at once where another attempt can not do better. */
  private final class FirstFailure extends SparkListener {
    @volatile var first: Option[SupplyException] = None

    override def onTaskEnd(end: SparkListenerTaskEnd): Unit = end.reason match {
      case failure: ExceptionFailure => failure.exception match {
          case Some(e: SupplyException) if !e.retry && first.isEmpty =>
            first = Some(e)
            sc.cancelJobGroup(group)
          case _ => ()
        }
      case _ => ()
    }
  }
}

object PinnedJob {

  /** The SupplyException that a task threw, or else the whole. */
  def causeOf(e: Throwable): Throwable =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null).collectFirst { case s: SupplyException => s }.getOrElse(e)
}
