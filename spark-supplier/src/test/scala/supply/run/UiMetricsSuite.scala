package supply.run

import java.net.URI

import scala.jdk.CollectionConverters._
import scala.util.Using

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumSource
import supply.task.SupplySettings
import supply.testing.{Background, LocalSpark, TestRank}

/** What Spark's UI shows of a run, as its REST interface returns it. */
class UiMetricsSuite extends AnyFunSuite with LocalSpark {
  override protected def sparkSettings: Seq[(String, String)] =
    Seq("spark.ui.enabled" -> "true", "spark.ui.port" -> "0")

  private def ask(what: String): JsonNode = {
    val port = URI.create(sc.uiWebUrl.get).getPort
    Using.resource(URI.create(
        s"http://127.0.0.1:$port/api/v1/applications/${sc.applicationId}/$what").toURL.openStream())(
      new ObjectMapper().readTree(_))
  }

  test(
    "each task of the stage shows what its pair has received, and how long it has waited") {
    TestRank.opened(2) { (configFiles, ranks) =>
      ranks.foreach(rank => Background.inBackground(rank.drain()))
      // Three partitions: rank 0 has two of them.
      val tuples = sc.parallelize(0 until 30, 3).map(SupplyJobSuite.tuple)
      val reports = SupplyJob.run(sc,
        SupplySettings(2, configFiles.mappedFiles, configFiles.namedPipes, epochs = 4,
          timeout = 20))(
        new DatumSource(tuples))
      val stage =
        ask("stages?details=true").elements.asScala.find(_.get("numTasks").asInt == 2).get
      val tasks = stage.get("tasks").elements.asScala.toSeq.sortBy(_.get("index").asInt)
      val shown = tasks.map(_.get("accumulatorUpdates").elements.asScala.map(a =>
          a.get("name").asText -> a.get("update").asLong).toMap)
      assert(shown.map(_("supply.elements")) == Seq(80, 40))
      assert(shown.map(_("supply.bytes")) == reports.map(_.bytes))
      assert(shown.map(_("supply.partitions")) == Seq(8, 4))
      shown.zip(reports).foreach { case (counted, report) =>
        assert(counted("supply.ms waited for the rank") == report.waitedForRank / 1000000)
        assert(counted("supply.ms waited for the source") == report.waitedForSource / 1000000)
      }
    }
  }
}
