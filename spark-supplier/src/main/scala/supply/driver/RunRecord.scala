package supply.driver

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.supply.DriverEndpoint

import supply.core.DriverCalls
import supply.executor.{TaskMessage, TaskReport}

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
