package supply.run

import java.util.UUID
import java.util.concurrent.LinkedBlockingQueue

import scala.util.Using

import org.apache.spark.supply.DriverEndpoint
import org.apache.spark.{SparkException, TaskKilledException}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.{DriverCalls, MisplacedException}
import supply.task.{PlacedTask, TaskMessage, TaskReport}
import supply.testing.LocalSpark

/** What the tasks of a job tell the driver, and what it answers. */
class RunRecordSuite extends AnyFunSuite with LocalSpark {
  private val report = TaskReport(rank = 0, host = "node", partitions = 1, elements = 2, bytes = 3,
    nanos = 4, waitedForRank = 5, waitedForSource = 6)

  private def reportOf(driver: DriverCalls): Option[TaskReport] =
    driver.ask[Option[TaskReport]](TaskMessage.ReportOf(0))

  private def withRecord(ranks: Int)(body: (RunRecord, DriverCalls) => Any): Unit = {
    val record = new RunRecord(ranks, () => true)
    Using.resource(new DriverEndpoint(sc, s"supply-${UUID.randomUUID()}")(record.answers))(
      endpoint =>
        body(record, endpoint.calls))
    ()
  }

  test("what an attempt tells after its batch is not about the next batch") {
    var late: DriverCalls = null
    withRecord(2) { (first, calls) =>
      late = calls
      late.ask[Unit](TaskMessage.Ended(report))
      assert(reportOf(late).contains(report) && first.reportsOf(0 until 1).isDefined)
      withRecord(2)((_, next) => assert(reportOf(next).isEmpty))
    }
    withRecord(2) { (next, calls) =>
      intercept[SparkException](late.ask[Unit](TaskMessage.Ended(report)))
      assert(reportOf(calls).isEmpty && next.attached.isEmpty)
    }
  }

  test("the driver knows that no rank has elements when each rank has said so") {
    def answer(driver: DriverCalls, rank: Int) =
      driver.ask[Option[Boolean]](TaskMessage.NoElements(rank))
    withRecord(2) { (_, calls) =>
      assert(Seq(0, 0, 1, 0).map(answer(calls, _)) == Seq(None, None, Some(true), Some(true)))
    }
    withRecord(2) { (_, calls) =>
      assert(answer(calls, 0).isEmpty)
      calls.ask[Unit](TaskMessage.Elements)
      assert(answer(calls, 0).contains(false))
    }
  }

  test("the driver knows why a task ends, by an error of ours") {
    val ended = new LinkedBlockingQueue[TaskMessage.Ends]
    val answers: PartialFunction[Any, Any] = { case ends: TaskMessage.Ends => ended.add(ends) }
    Using.resource(new DriverEndpoint(sc, s"supply-${UUID.randomUUID()}")(answers)) { endpoint =>
      val task = new PlacedTask(endpoint.calls, pauseMillis = 0)
      val killed = sc.makeRDD(0 until 2, 2).map { place =>
        try task(if (place == 1) throw new MisplacedException("on another node"))
        catch { case e: TaskKilledException => e.reason }
      }.collect()
      assert(killed.last == "on another node")
      ended.poll() match {
        case TaskMessage.Ends(_, 1, _, e: MisplacedException) =>
          assert(e.getMessage == "on another node" && e.retry)
        case other => fail(s"$other")
      }
      assert(ended.isEmpty)
    }
  }
}
