package supply.datasource

import java.io.StringWriter

import org.apache.logging.log4j.{Level, LogManager}
import org.apache.logging.log4j.core.Logger
import org.apache.logging.log4j.core.appender.WriterAppender
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, SourceException}
import supply.driver.RunPlan
import supply.executor.SupplySettings
import supply.plan.Hostfile
import supply.sources.rows.{ListLengths, RowSource}
import supply.testing.LocalSpark

/** DataFrames that are refused before any rank is awaited. */
class SupplyDataSourceSuite extends AnyFunSuite with LocalSpark {
  private lazy val spark = SparkSession.builder().config(sc.getConf).getOrCreate()

  private def rows(expressions: String*): DataFrame =
    spark.range(0, 9, 1, 3).selectExpr(expressions: _*)

  test("partitionBy() is refused by its name") {
    val writer = rows("id", "id % 2 as half").write.format("supply").mode("append").option(
      "mapped-files", "m").option("named-pipes", "n")
    assert(intercept[ConfigException](writer.partitionBy("half").save()).getMessage.startsWith(
        "partitionBy() means nothing to ranks"))
  }

  test("a fraction that cannot be exchanged is refused by its option") {
    val writer = rows("id").write.format("supply").mode("append").option("mapped-files", "m")
      .option("named-pipes", "n").option("shuffle", "all").option("exchange-fraction", "1.5")
    assert(intercept[ConfigException](writer.save()).getMessage.startsWith(
        "--exchange-fraction is 1.5"))
  }

  test("too many columns and a name that is too long are refused, with advice") {
    def refused(expressions: Seq[String]): String =
      intercept[ConfigException](RowSource.of(rows(expressions: _*),
          new ListLengths).schema).getMessage
    assert(refused((0 to 400).map(i => s"id as column_$i")).contains("not 401: select fewer"))
    assert(refused(Seq(s"id as `${"long" * 40}`")).contains("rename 'longlong"))
  }

  test("a warning names the ranks that get nothing, and says what to do") {
    val log = new StringWriter
    val appender = WriterAppender.createAppender(null, null, log, "test", false, true)
    val logger = LogManager.getLogger("supply.RunPlan").asInstanceOf[Logger]
    val level = logger.getLevel
    appender.start()
    logger.addAppender(appender)
    logger.setLevel(Level.WARN)
    try Seq(1, 2).foreach { partitions =>
        RunPlan(sc, FrameSource.of(rows("id").coalesce(partitions), new ListLengths),
          SupplySettings(2, "m", "n"), Hostfile.oneNode(2))
      }
    finally {
      logger.setLevel(level)
      logger.removeAppender(appender)
    }
    assert(log.toString.linesIterator.toSeq == Seq(
      "the data has 1 partition for 2 ranks, so rank 1 gets no rows: use 8 partitions, which have about equal numbers " +
        "of rows (df.repartition(N); of an LMDB, --partitions or its reader's option partitions)"))
  }

  test("a column whose first array is empty or missing is named") {
    Seq("if(id = 0, cast(array() as array<int>), array(1, 2, 3))",
      "cast(null as array<int>)").foreach { list =>
      val message = intercept[SourceException](RowSource.of(rows("id", s"$list as list"),
          new ListLengths)).getMessage
      assert(message.contains("column 'list' has no array, or its first one is empty"))
    }
  }
}
