package supply.rows

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.sql.DataFrame
import org.apache.spark.supply.VectorInternals
import org.scalatest.funsuite.AnyFunSuite

import supply.testing.TemporaryFolder

/** Columns that are copied whole make the same blocks as their rows. */
class ColumnBlocksSuite extends AnyFunSuite with FrameBlocks {
  private def everything: DataFrame = spark.range(0, FrameBlocks.rows, 1, 1).selectExpr("id",
    "id % 3 = 0 as flag",
    "cast(id % 100 as tinyint) as tiny", "cast(id * 31 as smallint) as small",
    "int(id * 65537) as number",
    "cast(id as float) / 3 as single", "sqrt(id) as root", "id % 3 as few_numbers",
    "if(id % 5 = 0, null, id) as long_or_null", "if(id < 300, int(id), null) as int_or_null",
    "if(id % 7 = 0, null, id % 2 = 0) as flag_or_null",
    "date_add(date'1999-12-31', int(id)) as day",
    "repeat('ä', if(id % 100 = 99, 1500, int(id * 37 % 70))) as text",
    "if(id % 4 = 0, null, concat('value ', id % 3)) as few_texts",
    "cast(repeat('x', int(id % 11)) as binary) as bytes",
    "timestamp_micros(id * 1000003) as instant",
    "if(id % 6 = 0, null, cast(id as decimal(10, 2))) as price",
    "cast(id as decimal(38, 5)) * -1000003 as large",
    "transform(sequence(1, 4), i -> cast(i * id as float)) as list",
    "if(id % 9 = 0, null, transform(sequence(1, 3), i -> i + id)) as longs_or_null",
    "if(id % 8 = 0, null, cast(id % 50 as decimal(7, 1))) as small_price",
    "if(id % 3 = 1, null, cast(id as decimal(30, 3)) * -77) as large_or_null",
    "if(id % 10 = 3, null, cast(id % 100 as tinyint)) as tiny_or_null",
    "if(id % 9 = 1, null, cast(id % 300 as smallint)) as few_shorts",
    "if(id % 5 = 1, null, cast(id % 7 as float)) as few_floats",
    "if(id % 5 = 2, null, id % 7 / 3) as few_doubles",
    "if(id < 990, null, cast(string(id) as binary)) as late_bytes",
    "id div 600 as part")

  private val othersOfOrc = Set("day", "instant", "price", "large", "list", "longs_or_null",
    "small_price", "large_or_null")

  for ((format, offHeap) <- Seq("parquet" -> false, "parquet" -> true, "orc" -> false))
    test(s"columns of files ($format, off-heap: $offHeap) make the same blocks as rows") {
      withOffHeap(offHeap)(TemporaryFolder { folder =>
        everything.write.partitionBy("part").format(format).save(s"$folder/data")
        val data = spark.read.format(format).load(s"$folder/data")
        compareBlocks(data, inColumns(data), inRows(data))
        val loaded = loadedColumns(inColumns(data))
        // Spark converts dates, instants and decimals of ORC, and its lists are read one by one.
        val others = if (format == "orc") othersOfOrc else Set.empty[String]
        assert(loaded == data.columns.toSet - "part" -- others)
      })
    }

  for (offHeap <- Seq(false, true))
    test(s"Spark's cache (off-heap: $offHeap) makes the same blocks as its rows") {
      withOffHeap(offHeap) {
        val cached = everything.select("id", "flag", "tiny", "small", "number", "single", "root",
          "few_numbers", "long_or_null", "int_or_null", "flag_or_null", "tiny_or_null",
          "few_floats",
          "few_doubles").cache()
        try {
          compareBlocks(cached, inColumns(cached), inRows(cached))
          assert(loadedColumns(inColumns(cached)) == cached.columns.toSet)
        } finally { cached.unpersist(blocking = true); () }
      }
    }

  test("batches of Spark's cache are freed one by one, as they are read") {
    spark.conf.set("spark.sql.inMemoryColumnarStorage.batchSize", 100L)
    val cached = everything.select("id", "root").cache()
    try {
      val source = inColumns(cached)
      val held = source.rdd.sparkContext.runJob(source.rdd,
        (_: TaskContext, batches: Iterator[ColumnarBatch]) => {
          var read = Vector.empty[OnHeapColumnVector]
          def held = read.count(vector => VectorInternals.values(vector) != null)
          val cursor = FrameBlocks.inVectors(
            batches.map { batch =>
              read :+= batch.column(0).asInstanceOf[OnHeapColumnVector]
              batch
            }, source.columns, areOurs = true)
          var most = 0
          while (cursor.next()) most = math.max(most, held)
          (read.size, most, held)
        }).toSeq
      assert(held == Seq((10, 1, 0)))
    } finally {
      cached.unpersist(blocking = true)
      spark.conf.unset("spark.sql.inMemoryColumnarStorage.batchSize")
    }
  }

  test("vectors over Arrow's memory make the same blocks as their rows") {
    compareArrowBlocks(everything.repartition(1))
  }
}
