package supply.failure

import java.io.IOException
import java.nio.file.Paths
import java.util.concurrent.TimeoutException

import scala.collection.mutable
import scala.concurrent.duration.DurationDouble
import scala.concurrent.{Await, Future, Promise}
import scala.util.control.NonFatal

import org.apache.spark.supply.{DriverEndpoint, SparkInternals}
import org.apache.spark.{SparkContext, SparkException, TaskContext}
import org.slf4j.LoggerFactory

import supply.core.{Deadline, DriverCalls, JobGroup, PlacementException, SupplyException, Threads}
import supply.executor.{PinnedTask, PreferredHosts}
import supply.pair.{ConfigFiles, PairPaths, ResidentFileNames}
import supply.plan.Hostfile

/**
 * Notifies all ranks that Spark failed, by a job: each executor notifies all ranks of its node. The
 * driver notifies those of its own node, too: it needs no core, and other jobs may hold all.
 */
private[supply] object FailureBroadcast {
  private val log = LoggerFactory.getLogger("supply.failure.FailureBroadcast")

  /** How long Spark may take to start the tasks: without executors it waits for ever. */
  private val startSeconds = 10.0

  /** How long further answers are awaited when each rank has one. */
  private val settleSeconds = 1.0

  /**
   * Returns when each node has notified its ranks. `report` gets those that were there, a node at a
   * time. Waits at most `wait` seconds for the first rank, and not for one of `attached` (it had a task of this run) that has
   * exited. Throws a TimeoutException if no executor has answered, a PlacementException if a node
   * with ranks ran no task, and the job's own error. Removes the resident files of the run from
   * `residentFolder`.
   */
  def send(sc: SparkContext, configFiles: ConfigFiles, hosts: Hostfile, run: Long,
      attached: Set[Int], text: String, wait: Double,
      residentFolder: Option[String] = None, report: Set[Int] => Unit = _ => ()): Unit =
    JobGroup(sc, s"supply-failure-${run.toHexString}", "notifying the ranks that Spark failed") {
      broadcast(sc, configFiles, hosts, run, attached, text, wait, residentFolder, report)
    }

  private def broadcast(sc: SparkContext, configFiles: ConfigFiles, hosts: Hostfile, run: Long,
      attached: Set[Int], text: String, wait: Double, residentFolder: Option[String],
      report: Set[Int] => Unit): Unit = {
    val endpoint = new DriverEndpoint(sc, s"supply-failure-${run.toHexString}")({
      case NodeFailureTask.IsWanted => true
    })
    val node = new NodeFailureTask(configFiles, PreferredHosts.known(sc, hosts), run, attached,
      text, wait, residentFolder, endpoint.calls)
    val open = mutable.Set(hosts.places.indices: _*)
    val there = mutable.Set(attached.toSeq: _*)
    val oneWasThere, allAreDone = Promise[Unit]()
    def done(ranks: Iterable[Int], seen: Set[Int]): Unit = synchronized {
      open --= ranks
      there ++= seen
      report(seen)
      if (seen.nonEmpty) oneWasThere.trySuccess(())
      if (open.isEmpty) allAreDone.trySuccess(())
    }
    val executors = locations(sc)
    val job = sc.submitJob(sc.makeRDD(executors.map(() -> _)),
      (_: Iterator[Unit]) => node.execute(), executors.indices,
      (_: Int, outcome: NodeFailureTask.Outcome) => done(outcome.ranks, outcome.seen), ())
    val here = onDriver(node) { outcome =>
      // Executors may see files that the driver does not, and remove their resident files.
      if (sc.isLocal) done(outcome.ranks, outcome.seen)
      else done(if (residentFolder.isEmpty) outcome.notified else Nil, outcome.notified)
    }
    def await(end: Future[Unit], seconds: Double): Unit = {
      Await.ready(Future.firstCompletedOf(Seq(job, end))(Threads.completing), seconds.seconds)
      ()
    }
    // A task on an executor that is stuck never ends: another task of its node is enough.
    try {
      await(Future.firstCompletedOf(Seq(oneWasThere.future, allAreDone.future))(Threads.completing),
        wait + startSeconds)
      try await(allAreDone.future, NodeFailureTask.othersSeconds + startSeconds)
      catch {
        case _: TimeoutException => ()
      } // The error below names the ranks of the nodes that have not answered.
      // A rank that one of them has notified may be gone when another looks for it.
      if (synchronized(!hosts.places.indices.forall(there))) {
        here.join((settleSeconds * 1000).toLong)
        try await(Future.never, settleSeconds)
        catch { case _: TimeoutException => () }
      }
      job.value.foreach(_.get)
      val missed = synchronized(open.toSeq.sorted)
      if (missed.nonEmpty) throw new PlacementException(
        s"no executor has run a task to its end on the nodes of ranks ${missed.mkString(", ")}")
    } finally {
      here.interrupt()
      endpoint.close()
      job.cancel()
    }
  }

  private def onDriver(node: NodeFailureTask)(done: NodeFailureTask.Outcome => Unit): Thread = {
    val thread = new Thread("supply-failure") {
      override def run(): Unit =
        try done(node.execute())
        catch {
          case _: InterruptedException => ()
          case NonFatal(e) => log.info("the driver cannot notify the ranks of its node", e)
        }
    }
    thread.setDaemon(true)
    thread.start()
    thread
  }

  /** One for each executor, whose cores killed tasks may still hold: others may be free sooner. */
  private def locations(sc: SparkContext): Seq[Seq[String]] = {
    val executors = SparkInternals.executorSlots(sc).map(SparkInternals.location)
    if (executors.isEmpty) Seq(Nil) else executors.map(Seq(_))
  }
}

/**
 * Notifies all ranks of its node that Spark failed ([[FailureBroadcast]]); waits at most `seconds`
 * for ranks that are not there yet.
 */
private[failure] final class NodeFailureTask(configFiles: ConfigFiles, hosts: Hostfile, run: Long,
    attached: Set[Int], text: String, seconds: Double, residentFolder: Option[String],
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
    try residentFolder.foreach(folder => ResidentFileNames(Paths.get(folder), paths).remove(run))
    catch { case _: IOException | _: SupplyException => () } // The next run of the pair removes it.

  /** Whether the driver still waits: this may run late, when new ranks have opened their pairs. */
  private def isWanted: Option[Boolean] =
    try Some(driver.ask[Boolean](IsWanted))
    catch {
      case _: TimeoutException => None
      case _: SparkException => Some(false)
    }
}

private[supply] object NodeFailureTask {
  /** The question to the driver. */
  case object IsWanted

  /** ranks: those of the node; seen: those that were there in this run; notified: just now. */
  final case class Outcome(ranks: Seq[Int], seen: Set[Int], notified: Set[Int])

  /** How long it waits for the other ranks when one is there: mpirun starts all at once. */
  val othersSeconds = 3.0

  /** How long one try waits for space in a full notification pipe: the other ranks wait, too. */
  private val pipeSeconds = 0.1

  private val pollMillis = 20L
}
