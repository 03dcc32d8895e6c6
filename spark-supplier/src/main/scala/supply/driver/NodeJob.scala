package supply.driver

import java.util.UUID
import java.util.concurrent.{ConcurrentSkipListMap, TimeoutException}

import scala.concurrent.{Await, Future, Promise}
import scala.concurrent.duration.{Duration, DurationDouble}
import scala.jdk.CollectionConverters._
import scala.reflect.ClassTag

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD

import supply.core.{MisplacedException, PlacementException, SupplyException, Threads}
import supply.executor.PinnedTask
import supply.plan.Hostfile

/** A job with one task on each node that has ranks. */
private[supply] object NodeJob {
  def nodes(hosts: Hostfile): Int = places(hosts).size

  /** The place of the first rank of each node. */
  private def places(hosts: Hostfile) =
    if (hosts.byHost.isEmpty) hosts.places.take(1) else hosts.byHost.map(_._2.head)

  /** Runs `work` on each node of the host file, in order; its argument: whether it is the first. */
  def run[A: ClassTag](sc: SparkContext, hosts: Hostfile, description: String)(
      work: Boolean => A): Seq[A] =
    JobGroup(sc, s"supply-nodes-${UUID.randomUUID()}", description) {
      answers(sc, hosts, description, throwMisplaced)(work).collect().toSeq
    }

  /**
   * The same, for at most `seconds`, and until `failure` finds one in the answer of a node: it is
   * thrown at once. Throws a PlacementException if a node has not answered then.
   */
  def runWhile[A: ClassTag](sc: SparkContext, hosts: Hostfile, description: String,
      seconds: Double)(work: Boolean => A)(failure: A => Option[SupplyException]): Seq[A] =
    JobGroup(sc, s"supply-nodes-${UUID.randomUUID()}", description) {
      val driver = SessionResults.calls
      val rdd = answers(sc, hosts, description, SessionResults.stopMisplaced(driver, _))(work)
      val received = new Array[A](rdd.getNumPartitions)
      val failed = Promise[Seq[A]]()
      val job = sc.submitJob(
        rdd,
        (answer: Iterator[A]) => answer.next(),
        received.indices,
        (node: Int, answer: A) => {
          received(node) = answer
          failure(answer).foreach(failed.tryFailure)
        },
        received.toSeq)
      try
        Await.result(Future.firstCompletedOf(Seq(failed.future, job))(Threads.completing),
          seconds.seconds)
      catch {
        case _: TimeoutException => throw new PlacementException(
            s"$description: not every node has answered within $seconds s (timeout): Spark needs an executor with a " +
              "free core on each node that has ranks")
        case e: Exception => throw RankJob.causeOf(e)
      } finally job.cancel()
    }

  /**
   * The same as run, but waits at most `seconds` for the other nodes once an answer `isLast`: Spark
   * waits for ever for a slot on a node that has lost its executor. Returns the answers that came.
   * If `cancelled` fails, the job is cancelled, and that failure is thrown.
   */
  def runUntil[A: ClassTag](sc: SparkContext, hosts: Hostfile, description: String,
      seconds: Double, cancelled: Future[Nothing] = Future.never)(
      work: Boolean => A)(isLast: A => Boolean): Seq[A] =
    JobGroup(sc, s"supply-nodes-${UUID.randomUUID()}", description) {
      val received = new ConcurrentSkipListMap[Int, A]
      val last = Promise[Unit]()
      val job = sc.submitJob(
        answers(sc, hosts, description, throwMisplaced)(work),
        (answer: Iterator[A]) => answer.next(),
        0 until nodes(hosts),
        (node: Int, answer: A) => {
          received.put(node, answer)
          if (isLast(answer)) last.trySuccess(())
        }, ())
      try {
        Await.result(Future.firstCompletedOf(Seq(last.future, job, cancelled))(Threads.completing),
          Duration.Inf)
        Await.ready(job, seconds.seconds)
      } catch {
        case _: TimeoutException => ()
        case e: Exception => throw RankJob.causeOf(e)
      } finally job.cancel()
      received.values.asScala.toSeq
    }

  private val throwMisplaced: String => Nothing = text => throw new MisplacedException(text)

  private def answers[A: ClassTag](sc: SparkContext, hosts: Hostfile, description: String,
      misplaced: String => Nothing)(work: Boolean => A): RDD[A] = {
    val targets = places(hosts).zipWithIndex.map { case (place, index) =>
      (place, index == 0) -> place.host.toSeq
    }
    sc.makeRDD(targets).map { case (place, first) =>
      if (!place.isOn(PinnedTask.host))
        misplaced(s"$description: the task for ${place.host.mkString} landed on ${PinnedTask.host}")
      work(first)
    }
  }
}
