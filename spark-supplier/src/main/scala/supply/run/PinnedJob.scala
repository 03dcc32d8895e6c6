package supply.run

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.supply.SparkInternals

import supply.core.SupplyException
import supply.plan.Plan
import supply.source.Source
import supply.task.{PinnedRDD, PinnedTask, TaskCounters, TaskMessage, TaskReport, TaskSettings}

/**
 * Runs one task for each group of ranks, all at once, for the whole run or for a batch of a stream.
 * `isWanted`: as of RunRecord. `served`: its ranks, if they connect.
 */
private[supply] final class PinnedJob(sc: SparkContext, source: Source, plan: Plan,
    settings: TaskSettings, isWanted: () => Boolean = () => true,
    served: Option[ServedRanks] = None) {
  if (served.isDefined) ServedWrite.requireCopies(source.schema.hasViews)
  val counters = new TaskCounters(sc)
  private val record = new RunRecord(plan.ranks, isWanted, served)
  private val groups = settings.groups
  private val places = Places.ranks(sc, settings.hosts, groups.first)
  private val job = new PlacedJob(sc, places, settings.user.timeout,
    s"supplying ${settings.user.ranks} ranks", Some(source.rdd), record.answers)

  /** The ranks whose pairs had a task of this job. */
  def attachedRanks: Set[Int] = record.attached.flatMap(group => groups.ranks(group))

  /** Stops the job, for that reason unless it already has one. */
  def fail(cause: SupplyException): Unit = job.fail(cause)

  /** Returns the reports, each under the first rank of its group. Throws the first cause of a failure. */
  def run(): IndexedSeq[TaskReport] = {
    val listening = served.map(ranks =>
      SparkInternals.listen(sc,
        new SparkListener {
          override def onTaskEnd(end: SparkListenerTaskEnd): Unit = ranks.left(end.taskInfo.taskId)
        }))
    val reports =
      try job.run { task =>
          val pinned = new PinnedTask(settings, counters, task.driver)
          PinnedRDD.using(sc, source, plan, places.preferred) {
            _.mapPartitionsWithIndex((group, epochs) =>
              epochs.map(all => task(pinned.run(group, all)))).collect().toIndexedSeq
          }
        }
      catch {
        // Spark may have lost an executor for good that had nothing left to do.
        case NonFatal(e) => record.reportsOf(0 until plan.ranks).getOrElse(throw e)
      } finally listening.foreach(_.close())
    reports.map(report => report.copy(rank = groups.first(report.rank)))
  }
}

/**
 * What the tasks of one job have reported. Spark may retry a task whose rank has received
 * everything and exited, if it died before its success was reported. Here ranks are the numbers of
 * groups. Each batch of a stream has its own record, so an attempt that outlives its batch says
 * nothing about the next one. `isWanted`: whether ranks may still need data.
 */
private[supply] final class RunRecord(ranks: Int, isWanted: () => Boolean,
    served: Option[ServedRanks] = None) {
  import TaskMessage._

  private val attachedGroups = mutable.Set.empty[Int]
  private val reports = mutable.Map.empty[Int, TaskReport]
  private val empty = mutable.Set.empty[Int]
  private var hasElements = false

  /** To the questions of the job's tasks. */
  val answers: PartialFunction[Any, Any] = {
    case message: TaskMessage => synchronized(answer(message))
  }

  private def answer(message: TaskMessage): Any = message match {
    case Attached(rank) => attachedGroups += rank; ()
    case Waits(rank, task, address) => served.foreach(_.waits(rank, task, address))
    case Keeps(rank, host, name) => served.foreach(_.keeps(rank, host, name))
    case Ended(report) => reports(report.rank) = report
    case ReportOf(rank) => reports.get(rank)
    case IsWanted => isWanted()
    case _: Ends => false // TaskWatch has answered it.
    case Elements => hasElements = true
    case NoElements(rank) =>
      empty += rank
      if (empty.size == ranks) Some(true) else if (hasElements) Some(false) else None
  }

  /** Those that had a task of this job. */
  def attached: Set[Int] = synchronized(attachedGroups.toSet)

  /** The reports of `ranks`, if each of them has received everything. */
  def reportsOf(ranks: Range): Option[IndexedSeq[TaskReport]] = synchronized {
    if (ranks.forall(reports.contains)) Some(ranks.map(reports)) else None
  }
}
