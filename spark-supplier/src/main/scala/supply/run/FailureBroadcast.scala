package supply.run

import java.util.concurrent.TimeoutException

import scala.collection.mutable
import scala.concurrent.duration.DurationDouble
import scala.concurrent.{Await, Future, Promise}
import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.slf4j.LoggerFactory

import supply.core.{PlacementException, Threads}
import supply.pair.{ConfigFiles, ResidentPlace}
import supply.plan.Hostfile
import supply.task.{NodeFailureTask, TaskMessage}

/**
 * Notifies all ranks that Spark failed, by a job: each executor notifies all ranks of its node, for
 * cores that killed tasks still hold may be free sooner on another one. The driver notifies those of
 * its own node, too: it needs no core, and other jobs may hold all.
 */
private[supply] object FailureBroadcast {
  private val log = LoggerFactory.getLogger("supply.run.FailureBroadcast")

  /** How long Spark may take to start the tasks: without executors it waits for ever. */
  private val startSeconds = 10.0

  /** How long further answers are awaited when each rank has one. */
  private val settleSeconds = 1.0

  /**
   * Returns when each node has notified its ranks. `report` gets those that were there, a node at a
   * time. Waits at most `wait` seconds for the first rank, and not for one of `attached` (it had a task of this run) that has
   * exited. Throws a TimeoutException if no executor has answered, a PlacementException if a node
   * with ranks ran no task, and the job's own error. Removes the resident files of the run, which are
   * at `residents`.
   */
  def send(sc: SparkContext, configFiles: ConfigFiles, hosts: Hostfile, run: Long,
      attached: Set[Int], text: String, wait: Double,
      residents: Option[ResidentPlace] = None, report: Set[Int] => Unit = _ => ()): Unit = {
    // Ranks of nodes that have not answered, and ranks that were there at any time.
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
    val job = new PlacedJob(sc, Places.executors(sc), timeout = Double.PositiveInfinity,
      "notifying the ranks that Spark failed",
      answers = { case TaskMessage.IsWanted => true })
    job.run { task =>
      val node = new NodeFailureTask(configFiles, Places.known(sc, hosts), run, attached, text,
        wait, residents, task.driver)
      val sent = job.submit(task)(_ => node.execute())((_, outcome) =>
        done(outcome.ranks, outcome.seen))
      val here = onDriver(node) { outcome =>
        // Executors may see files that the driver does not, and remove their resident files.
        if (sc.isLocal) done(outcome.ranks, outcome.seen)
        else done(if (residents.isEmpty) outcome.notified else Nil, outcome.notified)
      }
      def await(end: Future[Unit], seconds: Double): Unit = {
        Await.ready(Future.firstCompletedOf(Seq(sent, end))(Threads.completing), seconds.seconds)
        ()
      }
      // A task on an executor that is stuck never ends: another task of its node is enough.
      try {
        await(
          Future.firstCompletedOf(Seq(oneWasThere.future, allAreDone.future))(Threads.completing),
          wait + startSeconds)
        try await(allAreDone.future, NodeFailureTask.othersSeconds + startSeconds)
        catch {
          case _: TimeoutException => ()
        } // The error below names the ranks of the nodes that have not answered.
        // A rank that one of them has notified may be gone when another looks for it.
        if (synchronized(!hosts.places.indices.forall(there))) {
          here.join((settleSeconds * 1000).toLong)
          // A pause, which the end of a job that fails cuts short.
          try await(Future.never, settleSeconds)
          catch { case _: TimeoutException => () }
        }
        sent.value.foreach(_.get)
        val missed = synchronized(open.toSeq.sorted)
        if (missed.nonEmpty) throw new PlacementException(
          s"no executor has run a task to its end on the nodes of ranks ${missed.mkString(", ")}")
      } finally {
        here.interrupt()
        sent.cancel()
      }
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
}
