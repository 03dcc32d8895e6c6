package supply.failure

import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

import supply.core.PlacementException
import supply.plan.{Hostfile, RankPlacement}
import supply.testing.{LocalCluster, LongTest, TemporaryFolder, TestRank}

/** Notifies ranks while an executor cannot: its task does not begin. */
class FailureBroadcastClusterSuite extends AnyFunSuite {
  test("a node that stays silent when another has answered is named by its ranks", LongTest) {
    TemporaryFolder { folder =>
      val files = TestRank.configFiles(folder, 1)
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
        }
      }
    }
  }
}
