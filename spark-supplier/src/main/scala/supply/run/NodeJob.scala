package supply.run

import java.util.concurrent.{ConcurrentSkipListMap, TimeoutException}

import scala.concurrent.duration.{Duration, SECONDS}
import scala.concurrent.{Await, Future, Promise}
import scala.jdk.CollectionConverters._
import scala.reflect.ClassTag

import org.apache.spark.SparkContext

import supply.core.{DriverCalls, MisplacedException, PlacementException, Threads}
import supply.plan.Hostfile
import supply.task.PinnedTask

/** In a task on a node: all ranks, with the names of hosts that executors have, and the driver. */
private[supply] final case class Node(isFirst: Boolean, hosts: Hostfile, driver: DriverCalls)

/** A job with one task on each node that has ranks; each returns one answer. */
private[supply] object NodeJob {
  /**
   * Runs `work` on each node of the host file, and returns the answers in the order of the nodes.
   * Throws what a task failed with, what `cancelled` fails with, and a PlacementException if a node
   * has had no task for `timeout` seconds, or if the nodes have not answered within `seconds`.
   * `driver`: answers questions of the tasks.
   *
   * After an answer for which `isLast` holds, it waits at most `othersSeconds` for the other nodes,
   * whose answers may be missing: a node may have lost its executor.
   */
  def run[A: ClassTag](sc: SparkContext, hosts: Hostfile, description: String, timeout: Double,
      seconds: Double = Double.PositiveInfinity, cancelled: Future[Nothing] = Future.never,
      driver: PartialFunction[Any, Any] = PartialFunction.empty)(
      work: Node => A, isLast: A => Boolean = (_: A) => false, othersSeconds: Double = 0)
      : Seq[A] = {
    val known = Places.known(sc, hosts)
    val nodes = Places.nodes(sc, known)
    val places = nodes.hosts.places
    val job = new PlacedJob(sc, nodes, timeout, description, answers = driver)
    job.run { task =>
      val received = new ConcurrentSkipListMap[Int, A]
      val last = Promise[Unit]()
      val answered = job.submit(task) { node =>
        if (!places(node).isOn(PinnedTask.host)) throw new MisplacedException(
          s"$description: the task for ${places(node).host.mkString} landed on ${PinnedTask.host}")
        work(Node(node == 0, known, task.driver))
      } { (node, answer) =>
        received.put(node, answer)
        if (isLast(answer)) last.trySuccess(())
      }
      try {
        val end = Future.firstCompletedOf(Seq(last.future, answered, cancelled))(Threads.completing)
        Await.result(end, Duration(seconds, SECONDS))
        if (!answered.isCompleted) waitForOthers(answered, othersSeconds)
      } catch {
        case _: TimeoutException => throw new PlacementException(
            f"$description%s: not every node has answered within $seconds%.0f s: Spark needs an executor with a " +
              "free core on each node that has ranks",
            isTimeout = true)
      } finally answered.cancel()
      received.values.asScala.toSeq
    }
  }

  private def waitForOthers(answered: Future[Unit], seconds: Double): Unit =
    try {
      Await.ready(answered, Duration(seconds, SECONDS))
      ()
    } catch { case _: TimeoutException => () }
}
