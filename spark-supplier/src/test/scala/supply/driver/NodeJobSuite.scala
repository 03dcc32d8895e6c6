package supply.driver

import org.apache.spark.{SparkConf, SparkContext}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.{RankException, SupplyException}
import supply.plan.{Hostfile, RankPlacement}

/** A job with a task on each of two nodes, of which one slot only is free. Both are this machine. */
class NodeJobSuite extends AnyFunSuite {
  private val hosts = Hostfile(Vector("localhost", "localhost.test").map(host =>
      RankPlacement(Some(host), 0)))

  private def answers(work: Boolean => Boolean, seconds: Double = 60): Seq[Boolean] = {
    val sc = new SparkContext(new SparkConf().setMaster("local[1]").setAppName(suiteName)
        .set("spark.driver.host", "localhost").set("spark.locality.wait", "0")
        .set("spark.ui.enabled", "false")
        .set("spark.log.level", "OFF"))
    // The first node has failed.
    try NodeJob.runUntil(sc, hosts, "a job of a test", seconds)(work)(identity)
    finally sc.stop()
  }

  test("answers are in the order of the nodes") {
    assert(answers(isFirst => isFirst) == Seq(true, false))
    assert(answers(isFirst => !isFirst) == Seq(false, true))
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
}
