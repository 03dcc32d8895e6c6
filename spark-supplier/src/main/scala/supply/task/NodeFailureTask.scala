package supply.task

import java.io.IOException
import java.util.concurrent.TimeoutException

import scala.collection.mutable

import org.apache.spark.{SparkException, TaskContext}

import supply.block.ResidentFileNames
import supply.core.{Deadline, DriverCalls, SupplyException}
import supply.pair.{ConfigFiles, FailureSender, PairPaths, ResidentPlace}
import supply.plan.Hostfile

/**
 * Notifies all ranks of its node that Spark failed; waits at most `seconds`
 * for ranks that are not there yet.
 */
private[supply] final class NodeFailureTask(configFiles: ConfigFiles, hosts: Hostfile, run: Long,
    attached: Set[Int], text: String, seconds: Double, residents: Option[ResidentPlace],
    driver: DriverCalls)
    extends Serializable {
  import NodeFailureTask._

  def execute(): Outcome = {
    val ranks = hosts.ranksOn(PinnedTask.host)
    val seen = mutable.Set(ranks.filter(attached): _*)
    val notified = mutable.Set.empty[Int]
    try {
      val pairs = configFiles.read()
      // Spark may have failed because the config files have too few lines.
      notifyRanks(ranks.flatMap(rank => pairs.lift(hosts.places(rank).localRank).map(rank -> _)),
        seen, notified)
    } catch { case _: SupplyException => () } // The ranks get the first cause only.
    Outcome(ranks, seen.toSet, notified.toSet)
  }

  /** seen: the ranks that were there. It does not wait for such a rank once it is gone. */
  private def notifyRanks(pairs: Seq[(Int, PairPaths)], seen: mutable.Set[Int],
      notified: mutable.Set[Int]): Unit = {
    var open = pairs
    val deadline = new Deadline(seconds)
    // A rank that is there, and cannot be notified at this moment, is tried for longer.
    new Deadline(math.max(seconds, othersSeconds)).poll(pollMillis) {
      val outcomes = FailureSender.send(open.map(_._2), run, text, pipeSeconds)(isWanted)
      val answers = open.zip(outcomes)
      notified ++= answers.collect { case ((rank, _), FailureSender.Sent) => rank }
      open = answers.collect {
        case (pair @ (rank, _), outcome) if !isDone(rank, outcome, seen) => pair
      }
      if (seen.nonEmpty) deadline.restart(math.min(deadline.remainingNanos / 1e9, othersSeconds))
      // The driver has no TaskContext.
      open.isEmpty || Option(TaskContext.get()).exists(_.isInterrupted()) ||
      deadline.passed && !answers.exists(answer => mayHeal(answer._2))
    }
    // Also the files of ranks that have exited.
    pairs.foreach { case (_, paths) => removeResidentFile(paths) }
  }

  private def isDone(rank: Int, outcome: FailureSender.Outcome, seen: mutable.Set[Int]): Boolean =
    outcome match {
      case FailureSender.Sent =>
        seen += rank
        true
      case FailureSender.Busy =>
        seen += rank
        false
      case FailureSender.Absent => seen(rank)
      case FailureSender.Unwanted =>
        // It is another run's.
        seen += rank
        true
      case FailureSender.Refused(cause) => !cause.retry
    }

  private def mayHeal(outcome: FailureSender.Outcome): Boolean = outcome match {
    case FailureSender.Busy => true
    case FailureSender.Refused(cause) => cause.retry
    case _ => false
  }

  private def removeResidentFile(paths: PairPaths): Unit =
    try residents.foreach(place => ResidentFileNames(place.of(paths), paths).remove(run))
    catch { case _: IOException | _: SupplyException => () } // The next run of the pair removes it.

  /** Whether the driver still waits: this may run late, when new ranks have opened their pairs. */
  private def isWanted: Option[Boolean] =
    try Some(driver.ask[Boolean](TaskMessage.IsWanted))
    catch {
      case _: TimeoutException => None
      case _: SparkException => Some(false)
    }
}

private[supply] object NodeFailureTask {
  /** ranks: those of the node; seen: those that were there in this run; notified: just now. */
  final case class Outcome(ranks: Seq[Int], seen: Set[Int], notified: Set[Int])

  /** How long it waits for the other ranks when one is there: mpirun starts all at once. */
  val othersSeconds = 3.0

  /** How long one try waits for space in a full notification pipe: the other ranks wait, too. */
  private val pipeSeconds = 0.1

  private val pollMillis = 20L
}
