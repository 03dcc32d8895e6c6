package supply.driver

import java.util.UUID

import scala.util.control.NonFatal

import org.apache.spark.SparkContext

import supply.core.SupplyException
import supply.data.Source
import supply.executor.{PinnedRDD, PinnedTask, TaskCounters, TaskReport, TaskSettings}
import supply.plan.Plan

/** Runs one task for each rank, all at once, for the whole run or for a batch of a stream. */
private[supply] final class PinnedJob(
    sc: SparkContext, source: Source, plan: Plan, settings: TaskSettings) {
  val counters = new TaskCounters(sc)
  private val name = UnwantedRuns.nameOf(sc)
  private val job = new PlacedJob(sc, WatchedPlaces.ranks(settings.hosts), settings.user.timeout,
    s"supplying ${plan.ranks} ranks", Some(source.rdd))
  private val record = new RunRecord(sc, s"supply-${UUID.randomUUID()}", plan.ranks,
    () => !name.exists(UnwantedRuns.contains), job.stopped)

  /** The ranks whose pairs had a task of this job. */
  def attachedRanks: Set[Int] = record.attachedRanks

  /** Stops the job, for that reason unless it already has one. */
  def fail(cause: SupplyException): Unit = job.fail(cause)

  /** Returns the reports, by rank. Throws the first cause of a failure. */
  def run(): IndexedSeq[TaskReport] =
    try job.run { errors =>
        val task = new PinnedTask(settings, counters, record.calls)
        PinnedRDD.using(sc, source, plan, settings.hosts) {
          _.mapPartitionsWithIndex((rank, epochs) =>
            epochs.map(all =>
              errors.reported(task.run(rank, all))))
            .collect()
            .toIndexedSeq
        }
      }
    catch {
      // Spark may have lost an executor for good that had nothing left to do.
      case NonFatal(e) => record.reportsOf(0 until plan.ranks).getOrElse(throw e)
    } finally record.close()
}
