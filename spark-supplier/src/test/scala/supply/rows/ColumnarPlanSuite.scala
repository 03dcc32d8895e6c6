package supply.rows

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.{ColumnarToRowExec, LeafExecNode}
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
        assert(isColumnar(read.union(read)))
      }
    }

  for (adaptive <- Seq(false, true))
    test(s"Spark's cache is taken as columns, adaptive: $adaptive") {
      spark.conf.set("spark.sql.adaptive.enabled", adaptive)
      val cached = numbers.repartition(3).cache()
      try {
        assert(
          isColumnar(cached) && isColumnar(cached.select("id")) && isColumnar(cached.union(cached)))
        assert(!isColumnar(cached.where("id > 3")) && !isColumnar(cached.selectExpr("id + 1")))
      } finally {
        cached.unpersist(blocking = true)
        spark.conf.unset("spark.sql.adaptive.enabled")
      }
    }

  test("batches of engines with memory of their own are left to these engines: they make rows") {
    assert(ColumnarPlan.columns(new EngineScan).isEmpty)
    assert(ColumnarPlan.columns(new com.nvidia.spark.rapids.GpuScan).isEmpty)
    assert(ColumnarPlan.columns(ColumnarToRowExec(new com.nvidia.spark.rapids.GpuScan)).isEmpty)
    assert(ColumnarPlan.columns(new com.nvidia.spark.rapids.GpuToRows(new EngineScan)).isEmpty)
  }

  test("computed rows are taken as rows") {
    assert(!isColumnar(numbers))
    assert(!isColumnar(numbers.groupBy("third").count()))
  }
}

/** Of an engine that nobody here knows. */
trait EnginePlan

/** A plan of columns. */
class EngineScan extends LeafExecNode with EnginePlan {
  override def supportsColumnar: Boolean = true
  override def output: Seq[Attribute] = Nil
  override protected def doExecute(): RDD[InternalRow] = throw new UnsupportedOperationException
  override def productArity: Int = 0
  override def productElement(n: Int): Any = throw new NoSuchElementException
  override def canEqual(that: Any): Boolean = that.isInstanceOf[EngineScan]
}
