package supply.driver

import java.util.UUID
import java.util.concurrent.{ConcurrentSkipListMap, TimeoutException}

import scala.collection.mutable
import scala.concurrent.duration.{Duration, SECONDS}
import scala.concurrent.{Await, Future, Promise}
import scala.jdk.CollectionConverters._
import scala.reflect.ClassTag
import scala.util.Using

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.supply.DriverEndpoint

import supply.core.{DriverCalls, PlacementException, Threads}
import supply.executor.{HopelessErrors, Misplaced, PinnedTask, PreferredHosts}
import supply.plan.Hostfile

/** A job with one task on each node that has ranks; each returns one answer. */
private[supply] object NodeJob {
  /**
   * Runs `work` on each node of the host file; its argument: whether it is the first. Returns the
   * answers in the order of the nodes. Throws what a task failed with, what `cancelled` fails with,
   * and a PlacementException if a node has had no task for `timeout` seconds, or if the nodes have
   * not answered within `seconds`.
   *
   * After an answer for which `isLast` holds, it waits at most `othersSeconds` for the other nodes,
   * whose answers may be missing: a node may have lost its executor.
   */
  def run[A: ClassTag](sc: SparkContext, hosts: Hostfile, description: String, timeout: Double,
      seconds: Double = Double.PositiveInfinity, cancelled: Future[Nothing] = Future.never)(
      work: Boolean => A, isLast: A => Boolean = (_: A) => false, othersSeconds: Double = 0)
      : Seq[A] = {
    val nodes = WatchedPlaces.nodes(PreferredHosts.known(sc, hosts))
    Using.resource(new MisplacedTasks(sc, s"supply-nodes-${UUID.randomUUID()}",
        limit = math.max(Misplaced.Limit, timeout / Misplaced.waitSeconds).toInt)) { misplaced =>
      new PlacedJob(sc, nodes, timeout, description).run { errors =>
        val received = new ConcurrentSkipListMap[Int, A]
        val last = Promise[Unit]()
        val job = sc.submitJob(
          answers(sc, nodes.hosts, description, misplaced.calls, errors)(work),
          (answer: Iterator[A]) => answer.next(),
          nodes.hosts.places.indices,
          (node: Int, answer: A) => {
            received.put(node, answer)
            if (isLast(answer)) last.trySuccess(())
          }, ())
        try {
          Await.result(
            Future.firstCompletedOf(Seq(last.future, job, cancelled))(Threads.completing),
            Duration(seconds, SECONDS))
          if (!job.isCompleted) waitForOthers(job, othersSeconds)
        } catch {
          case _: TimeoutException => throw new PlacementException(
              f"$description%s: not every node has answered within $seconds%.0f s: Spark needs an executor with a " +
                "free core on each node that has ranks",
              isTimeout = true)
        } finally job.cancel()
        received.values.asScala.toSeq
      }
    }
  }

  private def waitForOthers(job: Future[Unit], seconds: Double): Unit =
    try {
      Await.ready(job, Duration(seconds, SECONDS))
      ()
    } catch { case _: TimeoutException => () }

  private def answers[A: ClassTag](sc: SparkContext, nodes: Hostfile, description: String,
      driver: DriverCalls, errors: HopelessErrors)(work: Boolean => A): RDD[A] = {
    val preferred = PreferredHosts.of(sc, nodes)
    val targets = nodes.places.zipWithIndex.map { case (place, index) =>
      (place, index == 0) -> place.host.toSeq.flatMap(preferred)
    }
    sc.makeRDD(targets).map { case (place, first) =>
      errors.reported {
        if (!place.isOn(PinnedTask.host)) Misplaced.stop(driver,
          s"$description: the task for ${place.host.mkString} landed on ${PinnedTask.host}")
        work(first)
      }
    }
  }
}

/**
 * Counts how often the task of a partition lands on a wrong node ([[Misplaced.stop]]): the last time
 * of `limit` fails. No other endpoint of this driver may have its name.
 */
private[driver] final class MisplacedTasks(sc: SparkContext, name: String,
    limit: Int = Misplaced.Limit) extends AutoCloseable {
  private val moves = mutable.Map.empty[Misplaced.MayMove, Int]
  private val endpoint = new DriverEndpoint(sc, name)({
    case move: Misplaced.MayMove =>
      moves.update(move, moves.getOrElse(move, 0) + 1)
      moves(move) < limit
  })

  def calls: DriverCalls = endpoint.calls

  override def close(): Unit = endpoint.close()
}
