package supply.datasource

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, SourceException}
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

  test("a column whose first array is empty or missing is named") {
    Seq("if(id = 0, cast(array() as array<int>), array(1, 2, 3))",
      "cast(null as array<int>)").foreach { list =>
      val message = intercept[SourceException](RowSource.of(rows("id", s"$list as list"),
          new ListLengths)).getMessage
      assert(message.contains("column 'list' has no array, or its first one is empty"))
    }
  }
}
