package supply.run

import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.SparkContext

import supply.core.SupplyException
import supply.plan.Plan
import supply.source.Source
import supply.task.{PinnedRDD, PinnedTask, TaskCounters, TaskMessage, TaskReport, TaskSettings}

/** Runs one task for each rank, all at once, for the whole run or for a batch of a stream. */
private[supply] final class PinnedJob(
    sc: SparkContext, source: Source, plan: Plan, settings: TaskSettings) {
  val counters = new TaskCounters(sc)
  private val name = UnwantedRuns.nameOf(sc)
  private val record = new RunRecord(plan.ranks, () => !name.exists(UnwantedRuns.contains))
  private val places = Places.ranks(sc, settings.hosts)
  private val job = new PlacedJob(sc, places, settings.user.timeout,
    s"supplying ${plan.ranks} ranks", Some(source.rdd), record.answers)

  /** The ranks whose pairs had a task of this job. */
  def attachedRanks: Set[Int] = record.attachedRanks

  /** Stops the job, for that reason unless it already has one. */
  def fail(cause: SupplyException): Unit = job.fail(cause)

  /** Returns the reports, by rank. Throws the first cause of a failure. */
  def run(): IndexedSeq[TaskReport] =
    try job.run { task =>
        val pinned = new PinnedTask(settings, counters, task.driver)
        PinnedRDD.using(sc, source, plan, places.preferred) {
          _.mapPartitionsWithIndex((rank, epochs) =>
            epochs.map(all => task(pinned.run(rank, all)))).collect().toIndexedSeq
        }
      }
    catch {
      // Spark may have lost an executor for good that had nothing left to do.
      case NonFatal(e) => record.reportsOf(0 until plan.ranks).getOrElse(throw e)
    }
}

/**
 * What the tasks of one job have reported. Spark may retry a task whose rank has received
 * everything and exited, if it died before its success was reported. Each batch of a stream has its
 * own record, so an attempt that outlives its batch says nothing about the next one. `isWanted`:
 * whether ranks may still need data.
 */
private[supply] final class RunRecord(ranks: Int, isWanted: () => Boolean) {
  import TaskMessage._

  private val attached = mutable.Set.empty[Int]
  private val reports = mutable.Map.empty[Int, TaskReport]
  private val empty = mutable.Set.empty[Int]
  private var hasElements = false

  /** To the questions of the job's tasks. */
  val answers: PartialFunction[Any, Any] = {
    case message: TaskMessage => synchronized(answer(message))
  }

  private def answer(message: TaskMessage): Any = message match {
    case Attached(rank) => attached += rank; ()
    case Ended(report) => reports(report.rank) = report
    case ReportOf(rank) => reports.get(rank)
    case IsWanted => isWanted()
    case Elements => hasElements = true
    case NoElements(rank) =>
      empty += rank
      if (empty.size == ranks) Some(true) else if (hasElements) Some(false) else None
  }

  /** The ranks whose pairs had a task of this job. */
  def attachedRanks: Set[Int] = synchronized(attached.toSet)

  /** The reports of `ranks`, if each of them has received everything. */
  def reportsOf(ranks: Range): Option[IndexedSeq[TaskReport]] = synchronized {
    if (ranks.forall(reports.contains)) Some(ranks.map(reports)) else None
  }
}

/**
 * Runs whose ranks have all returned before the end of their data. Their tasks end without a
 * failure. `supply.spark` names its run in a local property of Spark, says when all ranks have
 * returned, and forgets it when no job of the run is left.
 */
private[supply] object UnwantedRuns {
  private val Property = "supply.run"

  private val names = ConcurrentHashMap.newKeySet[String]()

  /** Jobs of `body` belong to that run. */
  def within[A](sc: SparkContext, run: String)(body: => A): A =
    LocalProperty(sc, Property, run)(body)

  def nameOf(sc: SparkContext): Option[String] = Option(sc.getLocalProperty(Property))

  def contains(name: String): Boolean = names.contains(name)

  def add(name: String): Unit = { names.add(name); () }

  def remove(name: String): Unit = { names.remove(name); () }
}

/** What the tasks of runs of `supply.spark` have reported, with the name of each data set, until [[remove]]. */
private[supply] object TaskTimes {
  private val runs = new ConcurrentHashMap[String, Vector[(String, TaskReport)]]()

  def add(run: String, data: String, reports: Seq[TaskReport]): Unit = {
    runs.merge(run, reports.map(data -> _).toVector, (old, more) => old ++ more)
    ()
  }

  def of(run: String): Seq[(String, TaskReport)] = runs.getOrDefault(run, Vector.empty)

  def remove(run: String): Unit = { runs.remove(run); () }
}

private[run] object LocalProperty {
  /** Runs `body` with that property of Spark. */
  def apply[A](sc: SparkContext, name: String, value: String)(body: => A): A = {
    val before = sc.getLocalProperty(name)
    sc.setLocalProperty(name, value)
    try body
    finally sc.setLocalProperty(name, before)
  }
}
