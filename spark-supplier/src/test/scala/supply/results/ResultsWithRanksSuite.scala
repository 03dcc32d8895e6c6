package supply.results

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.funsuite.AnyFunSuite

import supply.api.Results
import supply.core.{RankEndedException, RankException}
import supply.testing.{LocalSpark, ResultFiles, TestRank}
import supply.testing.Background.{inBackground, result}

/** Real ranks get the rows of a DataFrame and write a result, which Spark reads. */
class ResultsWithRanksSuite extends AnyFunSuite with LocalSpark {
  private lazy val spark = SparkSession.builder().config(sc.getConf).getOrCreate()

  private def withRanks(
      body: (ResultFiles, Seq[TestRank]) => Unit): Unit = ResultFiles(2) { files =>
    val ranks = files.configFiles.read().map(new TestRank(_))
    try {
      ranks.zipWithIndex.foreach { case (rank, i) => assert(rank.open(rank = i) == "OK") }
      body(files, ranks)
    } finally ranks.foreach(_.close())
  }

  private def supply(files: ResultFiles, data: DataFrame): Unit =
    data.write.format("supply").mode("append").option("ranks", 2)
      .option("mapped-files", files.configFiles.mappedFiles)
      .option("named-pipes", files.configFiles.namedPipes).save()

  test("ranks get rows by df.write, and their result is read, in many blocks") {
    withRanks { (files, ranks) =>
      val taking = ranks.map(rank => inBackground(rank.drain()))
      supply(files, spark.range(0, 90, 1, 4).toDF())
      assert(taking.map(result(_)).flatten.count(_.startsWith("OK ")) == 4)
      ranks.zipWithIndex.foreach { case (rank, i) =>
        Seq("result r", s"rows ${i * 1000} 1000", "seal").foreach(step =>
          assert(rank(step) == "OK"))
      }
      val data = files.load(spark)
      assert(data.collect().map(row => row.getLong(0) -> row.getString(1)).toSeq.sorted ==
        (0L until 2000).map(id => id -> id.toString))
      // The result outlives the ranks.
      ranks.foreach(rank => assert(rank("close") == "OK"))
      assert(data.count() == 2000)
      Results.release(data)
      assert(files.left.isEmpty)
    }
  }

  test("a rank that is killed before it seals is named, and so is one that rejects its result") {
    withRanks { (files, ranks) =>
      assert(ranks.head("result r") == "OK" && ranks.head("seal") == "OK")
      assert(ranks(1)("result r") == "OK" && ranks(1)("rows 0 2000") == "OK")
      val loading = inBackground(files.load(spark))
      ranks(1).kill()
      assert(intercept[RankEndedException](result(loading)).getMessage.startsWith(
          "rank 1 died before it sealed its result 'r'"))
    }
    withRanks { (files, ranks) =>
      assert(ranks.head("result r") == "OK" && ranks.head("reject the loss is nan") == "OK")
      assert(intercept[RankEndedException](files.load(spark)).getMessage ==
        "rank 0 aborted its result 'r': the loss is nan")
    }
  }

  test("a rank that is still writing at the time limit is said to live") {
    withRanks { (files, ranks) =>
      assert(ranks.head("result r") == "OK")
      val text = intercept[RankException](files.load(spark, "timeout" -> 0.5)).getMessage
      assert(text.contains("rank 0 has not sealed") && text.contains("is being written") &&
        text.contains("the rank lives"))
    }
  }
}
