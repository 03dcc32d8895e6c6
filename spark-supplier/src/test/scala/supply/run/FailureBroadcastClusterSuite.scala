package supply.run

import java.nio.file.{Files, Paths}

import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

import supply.core.PlacementException
import supply.pair.ConfigFiles
import supply.plan.{Hostfile, RankPlacement}
import supply.testing.{LocalCluster, LongTest, TemporaryFolder, TestRank}

/** Notifies ranks while an executor cannot: its task does not begin. */
class FailureBroadcastClusterSuite extends AnyFunSuite {
  test("a node that stays silent when another has answered is named by its ranks", LongTest) {
    TemporaryFolder { folder =>
      val files = TestRank.configFiles(folder, 2)
      Using.resource(new TestRank(files.read().head)) { rank =>
        assert(rank.open() == "OK")
        LocalCluster(2, "spark.locality.wait" -> "1h") { spark =>
          val sc = spark.sparkContext
          assert(LocalCluster.executors(spark, 2).size == 2)
          sc.parallelize(Seq(0), 1).foreachAsync(_ => Thread.sleep(Long.MaxValue))
          val hosts =
            Hostfile(Vector(RankPlacement(None, 0), RankPlacement(Some("elsewhere.test"), 0)))
          val missed = intercept[PlacementException](
            FailureBroadcast.send(sc, files, hosts, run = 77, Set.empty, "fire", wait = 20))
          assert(missed.getMessage.endsWith("the nodes of ranks 1"))
          assert(rank("next") == "ERROR SUPPLY_ERROR_SPARK fire")
          // Without any free core the driver notifies the ranks of its own node.
          sc.parallelize(Seq(0), 1).foreachAsync(_ => Thread.sleep(Long.MaxValue))
          Using.resource(new TestRank(files.read().last)) { second =>
            assert(second.open() == "OK")
            val one = ConfigFiles(last(files.mappedFiles), last(files.namedPipes))
            FailureBroadcast.send(sc, one, Hostfile.oneNode(1), run = 78, Set.empty, "fire",
              wait = 20)
            assert(second("next") == "ERROR SUPPLY_ERROR_SPARK fire")
          }
        }
      }
    }
  }

  /** A config file with the last line of that one. */
  private def last(file: String): String =
    Files.writeString(Paths.get(file + ".last"),
      Files.readAllLines(Paths.get(file)).get(1) + "\n").toString
}
