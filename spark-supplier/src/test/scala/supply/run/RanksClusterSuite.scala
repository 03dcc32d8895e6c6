package supply.run

import java.nio.file.{Files, Paths}

import org.apache.spark.sql.SparkSession
import org.scalatest.funsuite.AnyFunSuite

import supply.core.{PlacementException, RankException}
import supply.linalg.SilentRank
import supply.pair.ConfigFiles
import supply.plan.{Hostfile, RankPlacement}
import supply.testing.{LocalCluster, LongTest, TestRank}

/** Jobs for ranks with executors that are processes. */
class RanksClusterSuite extends AnyFunSuite {
  test("a command is cancelled with its job, and a node that stays silent is named", LongTest) {
    LocalCluster(2, "spark.locality.wait" -> "1h") { spark =>
      SilentRank(spark.sparkContext) { rank =>
        assert(intercept[RankException](rank.sendAndCancel()).getMessage.contains("was cancelled"))
      }
      // The cores of all executors are free again.
      assert(LocalCluster.executors(spark, 2).size == 2)
      notifiedWhileBusy(spark)
    }
  }

  /** Notifies ranks while an executor cannot: its task does not begin. */
  private def notifiedWhileBusy(spark: SparkSession): Unit =
    TestRank.opened(2) { (files, ranks) =>
      val sc = spark.sparkContext
      sc.parallelize(Seq(0), 1).foreachAsync(_ => Thread.sleep(Long.MaxValue))
      val hosts =
        Hostfile(Vector(RankPlacement(None, 0), RankPlacement(Some("elsewhere.test"), 0)))
      val missed = intercept[PlacementException](
        FailureBroadcast.send(sc, files, hosts, run = 77, Set.empty, "fire", wait = 20))
      assert(missed.getMessage.endsWith("the nodes of ranks 1"))
      assert(ranks.head("next") == "ERROR SUPPLY_ERROR_SPARK fire")
      // Without any free core the driver notifies the ranks of its own node.
      sc.parallelize(Seq(0), 1).foreachAsync(_ => Thread.sleep(Long.MaxValue))
      val one = ConfigFiles(last(files.mappedFiles), last(files.namedPipes))
      FailureBroadcast.send(sc, one, Hostfile.oneNode(1), run = 78, Set.empty, "fire", wait = 20)
      assert(ranks.last("next") == "ERROR SUPPLY_ERROR_SPARK fire")
    }

  /** A config file with the last line of that one. */
  private def last(file: String): String =
    Files.writeString(Paths.get(file + ".last"),
      Files.readAllLines(Paths.get(file)).get(1) + "\n").toString
}
