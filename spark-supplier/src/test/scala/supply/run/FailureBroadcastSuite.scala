package supply.run

import java.util.concurrent.{LinkedBlockingQueue, TimeUnit, TimeoutException}

import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.DriverCalls
import supply.plan.Hostfile
import supply.task.NodeFailureTask
import supply.testing.{LocalSpark, TestRank}

/** Notifies ranks by jobs of a real Spark. */
class FailureBroadcastSuite extends AnyFunSuite with LocalSpark {
  private val run = 77L
  private val text = "the source is on fire"
  private val fireAtTheRank = s"ERROR SUPPLY_ERROR_SPARK $text"

  test("a job group of the caller, which may be cancelled, is not that of the broadcast") {
    val groups = new LinkedBlockingQueue[String]
    val listener = new SparkListener {
      override def onJobStart(start: SparkListenerJobStart): Unit =
        groups.add(start.properties.getProperty("spark.jobGroup.id"))
    }
    TestRank.opened(1) { (files, ranks) =>
      sc.setJobGroup("mine", "of the caller")
      sc.addSparkListener(listener)
      try {
        FailureBroadcast.send(sc, files, Hostfile.oneNode(1), run, Set.empty, text, wait = 20)
        assert(groups.poll(30, TimeUnit.SECONDS).matches("supply-[-0-9a-f]{36}"))
        assert(ranks.head("next") == fireAtTheRank)
      } finally {
        sc.removeSparkListener(listener)
        sc.clearJobGroup()
      }
    }
  }

  test("a driver that answers late is asked again") {
    TestRank.opened(2) { (files, ranks) =>
      val task = new NodeFailureTask(files, Hostfile.oneNode(2), run, Set.empty, text, 20, None,
        new LateDriver)
      val outcome = sc.makeRDD(Seq(0), 1).map(_ => task.execute()).first()
      assert(outcome.notified == Set(0, 1))
      ranks.foreach(rank => assert(rank("next") == fireAtTheRank))
    }
  }
}

/** Its first answer comes too late. */
private final class LateDriver extends DriverCalls {
  private var asked = 0

  override def ask[A](question: java.io.Serializable): A = {
    asked += 1
    if (asked == 1) throw new TimeoutException("a test")
    true.asInstanceOf[A]
  }
}
