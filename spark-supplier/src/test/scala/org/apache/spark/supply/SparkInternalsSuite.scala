package org.apache.spark.supply

import java.util.concurrent.{CyclicBarrier, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import scala.language.reflectiveCalls

import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException

class SparkInternalsSuite extends AnyFunSuite {
  test("what must happen before Spark stops happens at once, and an error of one stops no other") {
    val all = new CyclicBarrier(5)
    val ended = new AtomicInteger
    val failing: Runnable = () =>
      throw new IllegalStateException("of one") {
        override def fillInStackTrace(): Throwable = this
      }
    SparkInternals.runAtOnce(failing +: Seq.fill[Runnable](5) { () =>
      all.await(60, TimeUnit.SECONDS)
      ended.incrementAndGet()
      ()
    })
    assert(ended.get == 5)
    SparkInternals.runAtOnce(Nil)
  }

  test("a member that this Spark does not have is one line that says what to do") {
    type Other = { def executorDataMap: Int; def tasksSuccessful: Int; def isZombie(of: Int): Int }
    val spark = new Object().asInstanceOf[Other]
    Seq[() => Int](() => spark.executorDataMap, () => spark.tasksSuccessful,
      () => spark.isZombie(1))
      .foreach { asked =>
        val text = intercept[ConfigException](SchedulerState.known(asked())).getMessage
        assert(
          text.startsWith(s"this Spark (${org.apache.spark.SPARK_VERSION}) does not say which"))
        assert(text.contains("use Apache Spark") && !text.contains("\n"))
      }
    assert(SchedulerState.known(7) == 7)
  }
}
