package supply.sources.rows

import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.funsuite.AnyFunSuite

import supply.testing.{LocalSpark, TemporaryFolder}

/** Which DataFrames are supplied column by column. test_dataframes compares what then arrives. */
class ColumnarPlanSuite extends AnyFunSuite with LocalSpark {
  private lazy val spark = {
    sc.setLogLevel("OFF")
    SparkSession.builder().getOrCreate()
  }

  private def numbers: DataFrame = spark.range(100).selectExpr("id", "id / 3 as third")

  private def isColumnar(data: DataFrame): Boolean =
    RowSource.of(data, new ListLengths).isInstanceOf[ColumnSource]

  for (format <- Seq("parquet", "orc"))
    test(s"columns of files ($format) are taken as columns, until Spark computes with them") {
      TemporaryFolder { folder =>
        val path = folder.resolve(format).toString
        numbers.write.format(format).save(path)
        val read = spark.read.format(format).load(path)
        assert(isColumnar(read))
        assert(isColumnar(read.select("third")))
        assert(!isColumnar(read.where("id > 3")))
        assert(!isColumnar(read.selectExpr("id + 1")))
        assert(!isColumnar(read.repartition(2)))
      }
    }

  test("Spark's cache has columns if all its types are primitive") {
    val cached = numbers.cache()
    assert(isColumnar(cached))
    cached.unpersist(blocking = true)
    val texts = numbers.selectExpr("cast(id as string)").cache()
    assert(!isColumnar(texts))
    texts.unpersist(blocking = true)
  }

  test("computed rows are taken as rows") {
    assert(!isColumnar(numbers))
    assert(!isColumnar(numbers.groupBy("third").count()))
  }
}
