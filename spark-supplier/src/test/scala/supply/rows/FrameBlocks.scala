package supply.rows

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.sql.supply.ArrowBatches
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.Suite

import supply.block.WrittenBlocks
import supply.source.{ElementCursor, KeepingCursor, ShuffledCursor, Source}
import supply.testing.LocalSpark

/** The blocks of a DataFrame of `FrameBlocks.rows` rows, read as rows and as columns. */
trait FrameBlocks extends LocalSpark with WrittenBlocks { this: Suite =>
  import FrameBlocks._

  protected lazy val spark = {
    val built = SparkSession.builder().config(sc.getConf).getOrCreate()
    // So that a partition has many batches, and a batch ends inside of a block.
    for (format <- Seq("parquet", "orc"))
      built.conf.set(s"spark.sql.$format.columnarReaderBatchSize", 97L)
    // All files are one partition.
    built.conf.set("spark.sql.files.minPartitionNum", 1L)
    built
  }

  protected def withOffHeap(isSet: Boolean)(body: => Unit): Unit = {
    spark.conf.set("spark.sql.columnVector.offheap.enabled", isSet)
    try body
    finally spark.conf.unset("spark.sql.columnVector.offheap.enabled")
  }

  protected def inRows(data: DataFrame): RowSource = {
    val rows = data.queryExecution.toRdd
    new RowSource(rows, RowColumn.of(data.schema, new Shapes().of(data.schema, rows).get))
  }

  protected def inColumns(data: DataFrame): ColumnSource =
    RowSource.of(data, new Shapes).asInstanceOf[ColumnSource]

  protected def compareBlocks(data: DataFrame, sources: DataFrameSource*): Unit = {
    val rowSource = inRows(data)
    def oneByOne(context: TaskContext): RowCursor =
      new RowCursor(rowSource.rdd.iterator(rowSource.rdd.partitions.head, context),
        rowSource.columns.toArray)
    def shuffled(cursor: KeepingCursor) = new ShuffledCursor(cursor, buffer = 300, seed = 5)
    for ((blockElements, first) <- Seq(Int.MaxValue -> 0L, 7 -> 123L)) {
      val expected = blocksOf(rowSource, blockElements, first)(oneByOne)
      assert(elements(expected) == rows - first)
      val expectedShuffled =
        blocksOf(rowSource, blockElements, first)(context => shuffled(oneByOne(context)))
      assert(expectedShuffled != expected && elements(expectedShuffled) == rows - first)
      for (source <- sources; partition = source.rdd.partitions.head) {
        same(blocksOf(source, blockElements, first)(source.openInOrder(partition, _)), expected)
        same(blocksOf(source, blockElements, first)(context =>
            shuffled(source.open(partition, context))), expectedShuffled)
      }
    }
  }

  /** Names the first difference: blocks are too long to print. */
  private def same(blocks: Seq[Seq[Any]], expected: Seq[Seq[Any]]): Unit = {
    for (i <- expected.indices.intersect(blocks.indices); j <- expected(i).indices)
      assert(blocks(i)(j) == expected(i)(j), s"part $j of block $i")
    assert(blocks.size == expected.size)
    ()
  }

  /**
   * The same of batches in Arrow's memory, all of whose columns are copied whole. Values of nullable
   * columns become null where a row is `hidden`, and what lies within them stays.
   */
  protected def compareArrowBlocks(data: DataFrame, hidden: Int => Boolean = _ => false): Unit = {
    val columns =
      RowColumn.of(data.schema, new Shapes().of(data.schema, data.queryExecution.toRdd).get)
    val source = new RowSource(null, columns)
    val all = data.queryExecution.toRdd.map(_.copy()).collect().toSeq
    for (blockElements <- Seq(Int.MaxValue, 7)) {
      def blocksBy(cursor: Iterator[ColumnarBatch] => ElementCursor) =
        ArrowBatches.use(all.grouped(97), data.schema, hidden)(batches =>
          blocks(cursor(batches), source.schema, source.mainColumn, blockElements, 0,
            blockBytes = 1 << 14))
      val copied =
        blocksBy(new ColumnCursor(_, columns.toArray, areOurs = false))
      same(copied,
        blocksBy(batches =>
          new RowCursor(batches.flatMap(_.rowIterator.asScala), columns.toArray)))
    }
    ArrowBatches.use(all.grouped(97), data.schema, hidden) { batches =>
      val batch = batches.next()
      for (i <- columns.indices)
        assert(ColumnCopy.of(columns(i)).get.load(batch.column(i), batch.numRows),
          columns(i).column)
    }
  }

  /** The names of the columns that are copied whole, in each batch. */
  protected def loadedColumns(source: ColumnSource): Set[String] = {
    val columns = source.columns
    source.rdd.sparkContext.runJob(source.rdd,
      (_: TaskContext, batches: Iterator[ColumnarBatch]) => {
        val copies = columns.map(ColumnCopy.of(_).get)
        batches.map(batch =>
          columns.indices.filter(i => copies(i).load(batch.column(i), batch.numRows))
            .map(columns(_).column.name).toSet).reduce(_ intersect _)
      }).reduce(_ intersect _)
  }

  /** The blocks of the only partition. */
  private def blocksOf(source: Source, blockElements: Int, first: Long)(
      open: TaskContext => ElementCursor): Seq[Seq[Any]] = {
    var written = Seq.empty[Seq[Any]]
    use = context =>
      written = blocks(open(context), source.schema, source.mainColumn, blockElements, first,
        blockBytes = 1 << 14)
    runTask(source)
    written
  }
}

private object FrameBlocks {
  val rows = 1000L

  /** What the task does. In local mode, tasks are in this JVM. */
  @volatile private var use: TaskContext => Unit = _

  private def runTask(source: Source): Unit = {
    val sc = source.rdd.sparkContext
    sc.runJob(sc.parallelize(Seq(0), 1), (context: TaskContext, _: Iterator[Int]) => use(context))
    ()
  }
}
