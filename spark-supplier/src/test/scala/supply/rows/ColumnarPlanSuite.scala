package supply.rows

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
    RowSource.of(data, new Shapes).isInstanceOf[ColumnSource]

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
        assert(!isColumnar(read.limit(5)))
        assert(!isColumnar(read.union(read)))
      }
    }

  test("Spark's cache is taken as rows: it keeps batches of columns until a task ends") {
    val cached = numbers.cache()
    val read = numbers
    assert(!isColumnar(cached) && !isColumnar(read.select("id")) && !isColumnar(read.union(read)))
    cached.unpersist(blocking = true)
  }

  test("computed rows are taken as rows") {
    assert(!isColumnar(numbers))
    assert(!isColumnar(numbers.groupBy("third").count()))
  }
}
