package supply.driver

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.supply.SparkInternals

import supply.executor.TaskReport

/**
 * What the driver knows of the ranks of a run, whatever becomes of those who have told it. A task
 * that dies once its rank has everything is tried again where Spark has not heard of its success,
 * and the rank may be gone by then.
 *
 * @param job
 *   each job has a record of its own: what an attempt tells that outlives its batch is not about
 *   the stream's next one
 */
private[supply] final class RunRecord(sc: SparkContext, job: String) extends AutoCloseable {
  import RunRecord._

  private val attached = mutable.Set.empty[Int]
  private val reports = mutable.Map.empty[Int, Fields]

  private val answers = SparkInternals.answerTasks(sc, name(job)) {
    case (Attached, rank: Int) => synchronized(attached += rank); true
    case (Ended, rank: Int, report: Fields @unchecked) => synchronized(reports(rank) = report); true
    case (ReportOf, rank: Int) => synchronized(reports.get(rank))
  }

  /** The ranks whose pairs had a task of this run. */
  def attachedRanks: Set[Int] = synchronized(attached.toSet)

  /** What all these ranks have received, where all have received everything. */
  def reportsOf(ranks: Range): Option[IndexedSeq[TaskReport]] = synchronized {
    if (ranks.forall(reports.contains)) Some(ranks.map(rank => asReport(reports(rank)))) else None
  }

  override def close(): Unit = answers.close()
}

/** What tasks tell and ask. */
private[supply] object RunRecord {
  private type Fields = (Int, String, Int, Long, Long, Long, Long, Long)

  private val Attached = "attached"
  private val Ended = "ended"
  private val ReportOf = "report of"

  private val asReport: Fields => TaskReport = (TaskReport.apply _).tupled

  private def name(job: String) = s"$job-record"

  def attached(job: String, rank: Int): Unit = {
    SparkInternals.askDriver[Boolean](name(job), (Attached, rank))
    ()
  }

  /** The rank has everything. */
  def ended(job: String, report: TaskReport): Unit = {
    SparkInternals.askDriver[Boolean](name(job),
      (Ended, report.rank, TaskReport.unapply(report).get))
    ()
  }

  /** What an attempt has reported whose rank has everything. */
  def reportOf(job: String, rank: Int): Option[TaskReport] =
    SparkInternals.askDriver[Option[Fields]](name(job), (ReportOf, rank)).map(asReport)
}
