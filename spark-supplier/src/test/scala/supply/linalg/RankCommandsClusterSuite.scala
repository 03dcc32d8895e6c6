package supply.linalg

import org.scalatest.funsuite.AnyFunSuite

import supply.core.RankException
import supply.testing.{LocalCluster, LongTest}

/** Commands that a job brings to a rank that never answers. */
class RankCommandsClusterSuite extends AnyFunSuite {
  test("another thread cancels a command, and Spark's job with it", LongTest) {
    LocalCluster(1) { spark =>
      SilentRank(spark.sparkContext) { rank =>
        assert(intercept[RankException](rank.sendAndCancel()).getMessage.contains("was cancelled"))
      }
      // The executor's only core is free again.
      assert(spark.range(3).count() == 3)
    }
  }
}
