package supply.driver

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
    val first = new RunRecord(sc, "first", () => true)
    val late = first.calls
    Using.resource(first) { _ =>
      late.ask[Unit](TaskMessage.Ended(report))
      assert(reportOf(late).contains(report) && first.reportsOf(0 until 1).isDefined)
      Using.resource(new RunRecord(sc, "next", () => true))(next =>
        assert(reportOf(next.calls).isEmpty))
    }
    Using.resource(new RunRecord(sc, "next", () => true)) { next =>
      intercept[SparkException](late.ask[Unit](TaskMessage.Ended(report)))
      assert(reportOf(next.calls).isEmpty && next.attachedRanks.isEmpty)
    }
  }

  test("the driver knows why a task stopped, by an error of ours") {
    Using.resource(new RunRecord(sc, "stopping", () => true)) { record =>
      record.calls.ask[Unit](TaskMessage.Stopped(7, new MisplacedException("on another node")))
      assert(record.causeOf(6).isEmpty)
      record.causeOf(7) match {
        case Some(e: MisplacedException) => assert(e.getMessage == "on another node" && e.retry)
        case other => fail(s"$other")
      }
    }
  }
}
