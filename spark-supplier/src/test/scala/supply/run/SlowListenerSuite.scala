package supply.run

import java.util.concurrent.Semaphore

import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.supply.SparkInternals
import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumSource
import supply.core.{Deadline, PlacementException, SourceException}
import supply.source.Source

/** A listener of the user is slow, and Spark's queues of events are short: nearly all are dropped. */
class SlowListenerSuite extends AnyFunSuite with RunsWithRanks with JobsThatFailEarly {

  override protected lazy val sc: SparkContext = {
    val started = SparkContext.getOrCreate(new SparkConf()
        .setMaster(s"local[$slots,4]").setAppName(suiteName).set("spark.ui.enabled", "false")
        .set("spark.log.level", "OFF")
        .set("spark.scheduler.listenerbus.eventqueue.capacity", "1")
        .set("spark.scheduler.listenerbus.eventqueue.shared.capacity", "1"))
    started.addSparkListener(new SparkListener {
      private def sleep(): Unit = Thread.sleep(300)
      override def onTaskStart(start: org.apache.spark.scheduler.SparkListenerTaskStart): Unit =
        sleep()
      override def onJobStart(start: org.apache.spark.scheduler.SparkListenerJobStart): Unit =
        sleep()
      override def onOtherEvent(event: SparkListenerEvent): Unit = sleep()
    })
    started
  }

  /** Of 20 elements, whose computation takes `millis` each. */
  private def slowly(millis: Long): Source =
    new DatumSource(sc.parallelize(0 until 20, 4).map { i =>
      Thread.sleep(millis)
      SupplyJobSuite.tuple(i)
    })

  test("a healthy run is not stopped, also if it takes longer than the limit") {
    val (seen, outcome) = supply(2, blockElements = Some(1),
      more = _.copy(timeout = 1.5, rankTimeout = Some(20)))(slowly(millis = 400))
    assert(outcome.toOption.exists(_.map(_.elements).sum == 20), outcome)
    assert(seen.forall(_.last == "END_OF_DATA"))
  }

  test("a rank whose task cannot be placed is named at the limit, and so is who holds the cores") {
    whileBusy(1, "occupies a core") {
      val started = System.nanoTime()
      val (_, outcome) = supply(2, timeout = 3)(slowly(millis = 2000))
      val error = outcome.left.toOption.get
      assert(error.isInstanceOf[PlacementException])
      assert(error.getMessage.contains("has had no Spark task for 3 s"))
      // The element that its task computes meanwhile takes no part in that.
      assert((System.nanoTime() - started) / 1e9 < 20)
    }
  }

  test("an error that no retry can mend is not tried again") {
    SlowListenerSuite.attempts.drainPermits()
    val (_, outcome) = supply(1)(new DatumSource(sc.parallelize(0 until 4, 2).map { _ =>
      SlowListenerSuite.attempts.release()
      throw new SourceException("not to be mended")
    }))
    assert(outcome.left.toOption.get.getMessage.contains("not to be mended"))
    assert(SlowListenerSuite.attempts.availablePermits() == 1)
  }

  test("executors are known, with their tasks") {
    def known = SparkInternals.executorSlots(sc).map(driver => driver.slots -> driver.activeTasks)
    // Tasks of the other tests may still end.
    new Deadline(30).poll(100)(known == Seq(slots -> 0))
    assert(known == Seq(slots -> 0))
  }

  test("a queue of our own ends with its listener") {
    def threads = Thread.getAllStackTraces.keySet.asScala.map(_.getName).filter(
      _.contains("spark-listener-group-supply"))
    val listening = SparkInternals.listen(sc, new SparkListener {})
    assert(threads.size == 1)
    listening.close()
    assert(threads.isEmpty)
  }
}

object SlowListenerSuite {
  private val attempts = new Semaphore(0)
}
