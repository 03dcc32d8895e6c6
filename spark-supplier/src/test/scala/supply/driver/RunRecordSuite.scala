package supply.driver

import java.util.concurrent.LinkedBlockingQueue

import scala.util.Using

import org.apache.spark.SparkException
import org.scalatest.funsuite.AnyFunSuite

import supply.core.{DriverCalls, MisplacedException}
import supply.executor.{TaskMessage, TaskReport}
import supply.testing.LocalSpark

/** What the tasks of a job tell the driver, and what it answers. */
class RunRecordSuite extends AnyFunSuite with LocalSpark {
  private val report = TaskReport(rank = 0, host = "node", partitions = 1, elements = 2, bytes = 3,
    nanos = 4, waitedForRank = 5, waitedForSource = 6)

  private def reportOf(driver: DriverCalls): Option[TaskReport] =
    driver.ask[Option[TaskReport]](TaskMessage.ReportOf(0))

  test("what an attempt tells after its batch is not about the next batch") {
    val first = new RunRecord(sc, "first", 2, () => true)
    val late = first.calls
    Using.resource(first) { _ =>
      late.ask[Unit](TaskMessage.Ended(report))
      assert(reportOf(late).contains(report) && first.reportsOf(0 until 1).isDefined)
      Using.resource(new RunRecord(sc, "next", 2, () => true))(next =>
        assert(reportOf(next.calls).isEmpty))
    }
    Using.resource(new RunRecord(sc, "next", 2, () => true)) { next =>
      intercept[SparkException](late.ask[Unit](TaskMessage.Ended(report)))
      assert(reportOf(next.calls).isEmpty && next.attachedRanks.isEmpty)
    }
  }

  test("the driver knows that no rank has elements when each rank has said so") {
    def answer(driver: DriverCalls, rank: Int) =
      driver.ask[Option[Boolean]](TaskMessage.NoElements(rank))
    Using.resource(new RunRecord(sc, "empty", 2, () => true)) { record =>
      assert(Seq(0, 0, 1, 0).map(answer(record.calls, _)) == Seq(None, None, Some(true),
        Some(true)))
    }
    Using.resource(new RunRecord(sc, "filled", 2, () => true)) { record =>
      assert(answer(record.calls, 0).isEmpty)
      record.calls.ask[Unit](TaskMessage.Elements)
      assert(answer(record.calls, 0).contains(false))
    }
  }

  test("the driver knows why a task stopped, by an error of ours") {
    val stopped = new LinkedBlockingQueue[TaskMessage.Stopped]
    Using.resource(new RunRecord(sc, "stopping", 2, () => true, stopped.put)) { record =>
      record.calls.ask[Unit](TaskMessage.Stopped(1, 7, new MisplacedException("on another node")))
      stopped.poll() match {
        case TaskMessage.Stopped(1, 7, e: MisplacedException) =>
          assert(e.getMessage == "on another node" && e.retry)
        case other => fail(s"$other")
      }
    }
  }
}
