package supply.driver

import scala.util.Using

import org.apache.spark.SparkException
import org.scalatest.funsuite.AnyFunSuite

import supply.executor.TaskReport
import supply.testing.LocalSpark

/** What the driver knows of a job's ranks. */
class RunRecordSuite extends AnyFunSuite with LocalSpark {
  private val report = TaskReport(rank = 0, host = "node", partitions = 1, elements = 2, bytes = 3,
    nanos = 4, waitedForRank = 5, waitedForSource = 6)

  test("what an attempt tells that outlives its batch is not about the next one") {
    Using.resource(new RunRecord(sc, "first")) { first =>
      RunRecord.ended("first", report)
      assert(RunRecord.reportOf("first", 0).contains(report) && first.reportsOf(
        0 until 1).isDefined)
      Using.resource(new RunRecord(sc, "next"))(_ => assert(RunRecord.reportOf("next", 0).isEmpty))
    }
    Using.resource(new RunRecord(sc, "next")) { next =>
      intercept[SparkException](RunRecord.ended("first", report))
      assert(RunRecord.reportOf("next", 0).isEmpty && next.attachedRanks.isEmpty)
    }
  }
}
