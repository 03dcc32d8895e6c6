package supply.rows

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.supply.ArrowBatches
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.scalatest.Suite

import supply.block.WrittenBlocks
import supply.source.{Draws, ElementCursor, Source}
import supply.testing.{BlockFileBytes, LocalSpark, PlainValues, ResultFiles}

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

  /** The blocks have the rows that Spark collects; those of the other sources are the same. */
  protected def compareBlocks(data: DataFrame, sources: DataFrameSource*): Unit = {
    val rowSource = inRows(data)
    def open(source: Source)(context: TaskContext): ElementCursor =
      source.open(source.rdd.partitions.head, context)
    def shuffled(source: Source)(context: TaskContext): ElementCursor =
      source.openShuffled(source.rdd.partitions.head, context, buffer = 300, seed = 5)
    val all = data.collect().map(PlainValues.of).toSeq
    sameRows(rowsOf(rowSource)(open(rowSource)), all)
    sameRows(rowsOf(rowSource)(shuffled(rowSource)), drawn(all, buffer = 300, seed = 5))
    for ((blockElements, first) <- Seq(Int.MaxValue -> 0L, 7 -> 123L)) {
      val expected = blocksOf(rowSource, blockElements, first)(open(rowSource))
      assert(elements(expected) == rows - first)
      val expectedShuffled = blocksOf(rowSource, blockElements, first)(shuffled(rowSource))
      assert(expectedShuffled != expected && elements(expectedShuffled) == rows - first)
      for (source <- sources) {
        same(blocksOf(source, blockElements, first)(open(source)), expected)
        same(blocksOf(source, blockElements, first)(shuffled(source)), expectedShuffled)
      }
    }
  }

  private def sameRows(found: Seq[Any], expected: Seq[Any]): Unit = {
    for (i <- expected.indices.intersect(found.indices)) assert(found(i) == expected(i), s"row $i")
    assert(found.size == expected.size)
    ()
  }

  /** The rows of a result that has these blocks. */
  private def rowsOf(source: DataFrameSource)(open: TaskContext => ElementCursor): Seq[Any] = {
    val raw = inTask(context =>
      rawBlocks(open(context), source.schema, source.mainColumn, blockElements = 100))
    ResultFiles(1) { files =>
      BlockFileBytes.write(files.path(0), BlockFileBytes.ofBlocks(source.schema, raw))
      files.load(spark).collect().map(PlainValues.of).toSeq
    }
  }

  protected def drawn[A](all: Seq[A], buffer: Int, seed: Long): Seq[A] = {
    val kept = mutable.Map.empty[Int, A]
    val rest = all.iterator
    val draws = new Draws(buffer, seed)((places, count) =>
      places.iterator.take(count).takeWhile(_ => rest.hasNext).map(kept(_) = rest.next()).size)
    Iterator.continually(draws).takeWhile(_.next()).map(draws => kept(draws.place)).toVector
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
      val copied = blocksBy(inVectors(_, columns))
      same(copied,
        blocksBy(batches => inOrder(batches.flatMap(_.rowIterator.asScala), columns)))
    }
    ArrowBatches.use(all.grouped(97), data.schema, hidden) { batches =>
      val batch = batches.next()
      for (i <- columns.indices)
        assert(isCopied(columns(i), batch.column(i), batch.numRows), columns(i).column)
    }
  }

  /** The names of the columns that are copied whole, in each batch. */
  protected def loadedColumns(source: ColumnSource): Set[String] = {
    val columns = source.columns
    source.rdd.sparkContext.runJob(source.rdd,
      (_: TaskContext, batches: Iterator[ColumnarBatch]) => {
        batches.map(batch =>
          columns.indices.filter(i => isCopied(columns(i), batch.column(i), batch.numRows))
            .map(columns(_).column.name).toSet).reduce(_ intersect _)
      }).reduce(_ intersect _)
  }

  /** The blocks of the only partition. */
  private def blocksOf(source: Source, blockElements: Int, first: Long)(
      open: TaskContext => ElementCursor): Seq[Seq[Any]] = inTask(context =>
    blocks(open(context), source.schema, source.mainColumn, blockElements, first,
      blockBytes = 1 << 14))

  /** Runs `body` as a task: in local mode, tasks are in this JVM. */
  protected def inTask[A](body: TaskContext => A): A = {
    var result = Option.empty[A]
    use = context => result = Some(body(context))
    sc.runJob(sc.parallelize(Seq(0), 1), (context: TaskContext, _: Iterator[Int]) => use(context))
    result.get
  }
}

private object FrameBlocks {
  def inOrder(rows: Iterator[InternalRow], columns: Seq[RowColumn]): RunCursor =
    new RunCursor(new RowsInOrder(rows, columns.toArray))

  def inVectors(batches: Iterator[ColumnarBatch], columns: Seq[RowColumn],
      areOurs: Boolean = false): RunCursor =
    new RunCursor(new VectorRuns(batches, columns.toArray, areOurs))

  /** Whether the values of a vector are copied whole. */
  def isCopied(column: RowColumn, vector: ColumnVector, rows: Int): Boolean =
    column.value.isInVectors &&
      ColumnCopy.of(column.column).load(VectorMemory.opened(vector), rows)

  val rows = 1000L

  /** What the task does. */
  @volatile private var use: TaskContext => Unit = _
}
