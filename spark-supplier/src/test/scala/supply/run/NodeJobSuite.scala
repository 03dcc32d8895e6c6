package supply.run

import java.util.concurrent.{CountDownLatch, TimeUnit}

import org.apache.spark.TaskKilled
import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.apache.spark.supply.SparkInternals
import org.scalatest.funsuite.AnyFunSuite

import supply.core.{Deadline, PlacementException, RankException, SupplyException}
import supply.plan.{Hostfile, RankPlacement}
import supply.testing.LocalSpark

/** A job with a task on each of two nodes, of which one slot only is free. Both are this machine. */
class NodeJobSuite extends AnyFunSuite with LocalSpark {
  override protected def slots: Int = 1

  override protected def sparkSettings: Seq[(String, String)] =
    Seq("spark.driver.host" -> "localhost", "spark.locality.wait" -> "0")

  private val hosts = Hostfile(Vector("localhost", "localhost.test").map(host =>
      RankPlacement(Some(host), 0)))

  private def answers(work: Boolean => Boolean, seconds: Double = 60): Seq[Boolean] =
    // The first node has failed.
    NodeJob.run(sc, hosts, "a job of a test", timeout = 60)(node => work(node.isFirst),
      isLast = identity[Boolean], seconds)

  test("answers are in the order of the nodes") {
    assert(answers(isFirst => isFirst) == Seq(true, false))
    assert(answers(isFirst => !isFirst) == Seq(false, true))
  }

  test("an executor of a node may have registered with another name than that of the host file") {
    // It registers a moment late.
    new Deadline(60).poll(100)(SparkInternals.executorSlots(sc).nonEmpty)
    def names(host: String) =
      Places.ranks(sc, Hostfile(Vector(RankPlacement(Some(host), 0))), identity).preferred.head
    assert(names("localhost") == Seq("localhost"))
    assert(names("127.0.0.1") == Seq("127.0.0.1", "localhost"))
    assert(names("no-such-node") == Seq("no-such-node"))
  }

  test("a node that does not answer is not waited for when another one has failed") {
    val first =
      answers({ isFirst => if (!isFirst) Thread.sleep(Long.MaxValue); isFirst }, seconds = 1)
    assert(first == Seq(true))
  }

  test("an error of a task is its cause") {
    val error = intercept[SupplyException](answers(_ => throw new RankException("no rank")))
    assert(error.getMessage == "no rank")
  }

  test("a node that gets no task within the timeout is an error that names it") {
    sc.setJobGroup("busy", "occupies the slot", interruptOnCancel = true)
    val busy = sc.parallelize(Seq(0), 1).foreachAsync(_ => Thread.sleep(Long.MaxValue))
    sc.clearJobGroup()
    val error = intercept[PlacementException](
      NodeJob.run(sc, hosts, "a job of a test", timeout = 1)(_ => true))
    assert(error.getMessage.startsWith("node localhost has had no Spark task for 1 s"))
    busy.cancel()
  }

  test("nodes that do not answer in time are an error, also with a task") {
    val error = intercept[PlacementException](NodeJob.run(sc, hosts, "a job of a test",
        timeout = 60, seconds = 2)(_ => Thread.sleep(Long.MaxValue)))
    assert(error.getMessage.contains("not every node has answered within 2 s"))
  }

  test("a task on a wrong node is tried again without a failure of Spark") {
    val elsewhere = Hostfile(Vector(RankPlacement(Some("192.0.2.1"), 0)))
    val again = new CountDownLatch(2)
    sc.addSparkListener(new SparkListener {
      override def onTaskEnd(end: SparkListenerTaskEnd): Unit = end.reason match {
        case killed: TaskKilled if killed.reason.contains("landed on") => again.countDown()
        case _ => ()
      }
    })
    val error = intercept[SupplyException](
      NodeJob.run(sc, elsewhere, "a job of a test", timeout = 60, seconds = 4)(_ => true))
    assert(again.await(30, TimeUnit.SECONDS))
    assert(error.getMessage.contains("not every node has answered within 4 s"))
  }
}
