package supply.rows

import scala.jdk.CollectionConverters._

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.supply.VectorInternals
import org.apache.spark.{Partition, TaskContext}

import supply.source.{BatchCursor, ElementCursor, ElementWriter, PartitionSizes}

/** The rows of a DataFrame that Spark computes as batches of columns. */
private[rows] final class ColumnSource(batches: ColumnBatches,
    columns: IndexedSeq[RowColumn], rowType: StructType, sizes: Option[PartitionSizes])
    extends DataFrameSource(columns, sizes) {
  override def rdd: RDD[ColumnarBatch] = batches.rdd

  override def open(partition: Partition, context: TaskContext): ElementCursor =
    new RunCursor(
      new VectorRuns(rdd.iterator(partition, context), columns.toArray, batches.areOurs))

  override protected def rows(
      partition: Partition, context: TaskContext): Iterator[InternalRow] = {
    val toRow = UnsafeProjection.create(rowType)
    def free(batch: ColumnarBatch): Iterator[InternalRow] = {
      VectorInternals.free(batch, batches.areOurs)
      Iterator.empty
    }
    rdd.iterator(partition, context).flatMap(batch =>
      batch.rowIterator.asScala.map(toRow) ++ free(batch))
  }
}

/** Runs of rows whose values lie column by column. */
private[rows] abstract class Runs(columns: Array[RowColumn]) {
  /** Loaded with the columns of this run. */
  val copies: Array[ColumnCopy] = columns.map(column => ColumnCopy.of(column.column))

  /** The row of each copy that is the first one of the run. */
  val firsts = new Array[Int](columns.length)

  /** The number of rows; 0 at the end. */
  var size = 0

  /** Moves to the next run; false at the end. */
  def next(): Boolean

  /** The number of a row of this run in the partition. */
  def number(at: Int): Long

  def close(): Unit
}

private[rows] object Runs {
  /** Rows of a run whose values are put together here. */
  final val Rows = 256
}

private[rows] final class RunCursor(runs: Runs) extends BatchCursor {
  private val copies = runs.copies

  /** The entry of the schema that each column has. */
  private val entries = copies.scanLeft(0)(_ + _.entries)

  /** The current row in its run. */
  private var at = -1

  override def next(): Boolean = {
    at += 1
    at < runs.size || {
      at = 0
      runs.next()
    }
  }

  override def ready: Int = runs.size - at

  override def bytes(count: Int): Long = {
    var bytes = 0L
    var i = 0
    while (i < copies.length) {
      bytes += copies(i).bytes(runs.firsts(i) + at, count)
      i += 1
    }
    bytes
  }

  override def write(to: ElementWriter, count: Int): Unit = {
    var i = 0
    while (i < copies.length) {
      copies(i).write(runs.firsts(i) + at, count, entries(i), to)
      i += 1
    }
    at += count - 1
  }

  override def write(to: ElementWriter): Unit = write(to, 1)

  override def describe: String = s"row ${runs.number(at)} of its partition"

  override def close(): Unit = runs.close()
}

/**
 * Rows in batches of columns: those of a batch are copied whole, where its vectors permit that. The
 * other columns are put together value by value, some hundred at a time.
 */
private[rows] final class VectorRuns(batches: Iterator[ColumnarBatch], columns: Array[RowColumn],
    areOurs: Boolean) extends Runs(columns) {
  private val areInVectors = columns.map(_.value.isInVectors)
  private val isLoaded = new Array[Boolean](columns.length)
  private lazy val others = columns.map(column => new RunColumn(column.column))

  private var batch: ColumnarBatch = _
  private var batchRows = 0
  private var rowsBefore = 0L

  /** The first row of the run in its batch. */
  private var first = 0

  override def next(): Boolean = {
    first += size
    while (first >= batchRows && { free(); batches.hasNext }) load(batches.next())
    size = batchRows - first
    if (size > 0) begin()
    size > 0
  }

  private def load(next: ColumnarBatch): Unit = {
    rowsBefore += batchRows
    batch = next
    batchRows = next.numRows
    first = 0
    var i = 0
    while (i < columns.length) {
      isLoaded(i) =
        areInVectors(i) && copies(i).load(VectorMemory.opened(next.column(i)), batchRows)
      i += 1
    }
  }

  private def begin(): Unit = {
    if (isLoaded.contains(false)) size = math.min(size, Runs.Rows)
    var i = 0
    while (i < columns.length) {
      firsts(i) = if (isLoaded(i)) first else 0
      if (!isLoaded(i)) {
        others(i).begin(mayRefer = false)
        for (row <- first until first + size) columns(i).append(batch.getRow(row), i, others(i))
        copies(i).load(others(i), size)
      }
      i += 1
    }
  }

  private def free(): Unit = if (batch != null) {
    VectorInternals.free(batch, areOurs)
    batch = null
  }

  override def number(at: Int): Long = rowsBefore + first + at

  override def close(): Unit = free()
}
