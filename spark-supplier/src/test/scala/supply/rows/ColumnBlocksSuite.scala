package supply.rows

import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.funsuite.AnyFunSuite

import supply.block.WrittenBlocks
import supply.source.{ElementCursor, Source}
import supply.testing.{LocalSpark, TemporaryFolder}

/** Columns that are copied whole make the same blocks as their rows, one by one. */
class ColumnBlocksSuite extends AnyFunSuite with LocalSpark with WrittenBlocks {
  import ColumnBlocksSuite._

  private lazy val spark = {
    val built = SparkSession.builder().config(sc.getConf).getOrCreate()
    // So that a partition has many batches, and a batch ends inside of a block.
    for (format <- Seq("parquet", "orc"))
      built.conf.set(s"spark.sql.$format.columnarReaderBatchSize", 97L)
    // All files are one partition.
    built.conf.set("spark.sql.files.minPartitionNum", 1L)
    built
  }

  private def everything: DataFrame = spark.range(0, rows, 1, 1).selectExpr("id",
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
    "id div 600 as part")

  for (format <- Seq("parquet", "orc"))
    test(s"columns of files ($format) make the same blocks as rows") {
      TemporaryFolder { folder =>
        everything.write.partitionBy("part").format(format).save(s"$folder/data")
        val data = spark.read.format(format).load(s"$folder/data")
        val inColumns = RowSource.of(data, new Shapes).asInstanceOf[ColumnSource]
        val shapes = new Shapes().of(data.schema, data.queryExecution.toRdd).get
        val inRows = new RowSource(data.queryExecution.toRdd,
          RowColumn.of(data.schema, shapes))
        for (blockElements <- Seq(Int.MaxValue, 7); first <- Seq(0L, 123L)) {
          val expected = blocksOf(inRows, blockElements, first)
          assert(expected.size > 10 && elements(expected) == rows - first)
          assert(blocksOf(inColumns, blockElements, first) == expected)
        }
      }
    }

  /** The blocks of the only partition. */
  private def blocksOf(source: Source, blockElements: Int, first: Long): Seq[Seq[Any]] = {
    var written = Seq.empty[Seq[Any]]
    use = cursor =>
      written = blocks(cursor, source.schema, source.mainColumn, blockElements, first,
        blockBytes = 1 << 14)
    runWithCursor(source)
    written
  }
}

private object ColumnBlocksSuite {
  private val rows = 1000L

  /** What the task does with its cursor. In local mode, tasks are in this JVM. */
  @volatile private var use: ElementCursor => Unit = _

  private def runWithCursor(source: Source): Unit = {
    val partition = source.rdd.partitions.head
    val rdd = source.rdd.asInstanceOf[RDD[Any]]
    rdd.sparkContext.runJob(rdd,
      (context: TaskContext, _: Iterator[Any]) =>
        use(source.openInOrder(partition, context)))
    ()
  }
}
