package supply.driver

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.supply.DriverEndpoint

import supply.core.{DriverCalls, SupplyException}
import supply.data.Source
import supply.executor.{PinnedRDD, PinnedTask, TaskCounters, TaskMessage, TaskReport, TaskSettings}
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

/**
 * What the tasks of one job have reported. Spark may retry a task whose rank has received
 * everything and exited, if it died before its success was reported. Each batch of a stream has its
 * own record, so an attempt that outlives its batch says nothing about the next one. `isWanted`:
 * whether ranks may still need data; `stopped`: called when a task stops without a failure that
 * Spark counts.
 */
private[supply] final class RunRecord(sc: SparkContext, job: String, ranks: Int,
    isWanted: () => Boolean, stopped: TaskMessage.Stopped => Unit = _ => ())
    extends AutoCloseable {
  import TaskMessage._

  private val attached = mutable.Set.empty[Int]
  private val reports = mutable.Map.empty[Int, TaskReport]
  private val empty = mutable.Set.empty[Int]
  private var hasElements = false

  private val endpoint = new DriverEndpoint(sc, s"$job-record")({
    case message: TaskMessage => synchronized(answer(message))
  })

  private def answer(message: TaskMessage): Any = message match {
    case Attached(rank) => attached += rank; ()
    case Ended(report) => reports(report.rank) = report
    case ReportOf(rank) => reports.get(rank)
    case IsWanted => isWanted()
    case Elements => hasElements = true
    case NoElements(rank) =>
      empty += rank
      if (empty.size == ranks) Some(true) else if (hasElements) Some(false) else None
    case message: Stopped => stopped(message)
  }

  /** How the tasks report. */
  def calls: DriverCalls = endpoint.calls

  /** The ranks whose pairs had a task of this job. */
  def attachedRanks: Set[Int] = synchronized(attached.toSet)

  /** The reports of `ranks`, if each of them has received everything. */
  def reportsOf(ranks: Range): Option[IndexedSeq[TaskReport]] = synchronized {
    if (ranks.forall(reports.contains)) Some(ranks.map(reports)) else None
  }

  override def close(): Unit = endpoint.close()
}

/**
 * Runs whose ranks have all returned before the end of their data. Their tasks end without a
 * failure. `supply.spark` names its run in a local property of Spark, says when all ranks have
 * returned, and forgets it when no job of the run is left.
 */
private[supply] object UnwantedRuns {
  private val Property = "supply.run"

  private val names = ConcurrentHashMap.newKeySet[String]()

  def nameOf(sc: SparkContext): Option[String] = Option(sc.getLocalProperty(Property))

  def contains(name: String): Boolean = names.contains(name)

  def add(name: String): Unit = { names.add(name); () }

  def remove(name: String): Unit = { names.remove(name); () }
}
