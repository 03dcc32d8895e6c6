package supply.driver

import org.apache.spark.{SparkContext, SparkException}

import supply.core.SupplyException
import supply.data.Source
import supply.executor.{PinnedRDD, PinnedTask, TaskCounters, TaskReport, TaskSettings}
import supply.plan.Plan

/** Runs one task per rank, all at once, for the whole run. */
final class PinnedJob(sc: SparkContext, source: Source, plan: Plan, settings: TaskSettings) {
  private val group = s"supply-${java.util.UUID.randomUUID()}"
  val counters = new TaskCounters(sc)
  private val record = new RunRecord(sc, group)
  @volatile private var firstFailure: Option[SupplyException] = None

  /** The ranks whose pairs had a task of this run. */
  def attachedRanks: Set[Int] = record.attachedRanks

  /** The reports, by rank. Throws the first cause of a failure. */
  def run(): IndexedSeq[TaskReport] = {
    val watch = new TaskWatch(sc, group, settings.hosts, settings.timeout, giveUp)
    sc.addSparkListener(watch)
    try JobGroup(sc, group, s"supplying ${plan.ranks} ranks") {
        val task = new PinnedTask(settings, counters, group)
        new PinnedRDD(sc, source, plan, settings.hosts)
          .mapPartitionsWithIndex((rank, epochs) => epochs.map(task.run(rank, _)))
          .collect()
          .toIndexedSeq
      }
    catch {
      // Spark may have lost an executor for good that had nothing left to do.
      case e: SparkException => record.reportsOf(0 until plan.ranks).getOrElse(
          throw firstFailure.getOrElse(PinnedJob.causeOf(e)))
    } finally {
      sc.removeSparkListener(watch)
      record.close()
      watch.close()
    }
  }

  /** Ends the job at once, for that reason unless it has one already. */
  def giveUp(cause: SupplyException): Unit = synchronized {
    if (firstFailure.isEmpty) {
      firstFailure = Some(cause)
      sc.cancelJobGroup(group)
    }
  }
}

object PinnedJob {

  /** The SupplyException that a task threw, or else the whole. */
  def causeOf(e: Throwable): Throwable =
    Iterator.iterate(e)(_.getCause).takeWhile(_ != null).collectFirst { case s: SupplyException =>
      s
    }.getOrElse(e)
}
