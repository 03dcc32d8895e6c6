package supply.rows

import scala.annotation.tailrec
import scala.jdk.CollectionConverters._

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase
import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.execution.{ColumnarToRowExec, DataSourceScanExec, InputAdapter, SQLExecutionRDD, SparkPlan, WholeStageCodegenExec}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}
import org.apache.spark.{Partition, TaskContext}

import supply.protocol.Format
import supply.source.{BatchCursor, BatchWriter, ElementCursor, ElementWriter, KeepingCursor, PartitionSizes}

/** The rows of a DataFrame that Spark computes as batches of columns. */
private[rows] final class ColumnSource(override val rdd: RDD[ColumnarBatch],
    columns: IndexedSeq[RowColumn], rowType: StructType, sizes: Option[PartitionSizes])
    extends DataFrameSource(columns, sizes) {
  override def openInOrder(partition: Partition, context: TaskContext): ElementCursor =
    new ColumnCursor(rdd.iterator(partition, context), columns.toArray)

  /** Row by row: what is kept are rows. */
  override def open(partition: Partition, context: TaskContext): KeepingCursor = {
    val toRow = UnsafeProjection.create(rowType)
    val batches = rdd.iterator(partition, context)
    new RowCursor(batches.flatMap(_.rowIterator.asScala).map(toRow), columns.toArray)
  }
}

/** Rows in batches of columns, as Spark reads files: columns are copied whole. */
private[rows] final class ColumnCursor(
    batches: Iterator[ColumnarBatch], columns: Array[RowColumn]) extends BatchCursor {
  /** The entry of each column. */
  private val entries = columns.map(_.entries).scanLeft(0)(_ + _)
  private val many = columns.map(column => ColumnValues.of(column.column.format))

  /** Bytes of a row that a writer reserves, without texts and bytes. */
  private val fixedBytes =
    columns.indices.filter(i => columns(i).isReserved).map(columns(_).width.toLong).sum
  private val texts = columns.indices.filter(i =>
    Format.of(columns(i).column) == Format.Variable).map(i => new TextEnds(i, columns(i))).toArray

  /** Nobody knows the bytes of values that have others within them: such rows go one by one. */
  private val areSizesKnown = columns.forall(_.entries == 1)

  private var batch: ColumnarBatch = _
  private var size = 0

  /** The current row in the batch. */
  private var at = -1
  private var rowsBefore = 0L

  override def next(): Boolean = {
    at += 1
    while (at >= size && batches.hasNext) load(batches.next())
    at < size
  }

  private def load(next: ColumnarBatch): Unit = {
    rowsBefore += size
    batch = next
    size = next.numRows
    at = 0
    texts.foreach(_.load(next))
  }

  override def ready: Int = if (areSizesKnown) size - at else 0

  override def bytes(count: Int): Long = {
    var bytes = count * fixedBytes
    var i = 0
    while (i < texts.length) {
      bytes += texts(i).bytes(at, count)
      i += 1
    }
    bytes
  }

  override def write(to: BatchWriter, count: Int): Unit = {
    var i = 0
    while (i < columns.length) {
      val vector = batch.column(i)
      many(i) match {
        case Some(values) if !vector.hasNull => values.write(vector, at, count, entries(i), to)
        case _ => writeEach(i, count, to)
      }
      i += 1
    }
    at += count - 1
  }

  private def writeEach(i: Int, count: Int, to: BatchWriter): Unit = {
    val column = columns(i)
    var row = at
    while (row < at + count) {
      column.write(batch.getRow(row), i, entries(i), to)
      row += 1
    }
  }

  override def write(to: ElementWriter): Unit = RowColumn.write(columns, batch.getRow(at), to)

  override def describe: String = s"row ${rowsBefore + at} of its partition"

  override def close(): Unit = ()
}

/** Writes many values of a column of Spark at once, none of which is null, as those of column `i`. */
private[rows] trait ColumnValues extends Serializable {
  def write(values: ColumnVector, from: Int, count: Int, i: Int, to: BatchWriter): Unit
}

private[rows] object ColumnValues {
  /** Values with this Arrow format; None: they are written one by one. */
  def of(format: String): Option[ColumnValues] = format match {
    case "i" | "tdD" => Some((values, from, count, i, to) =>
        to.putInts(i, values.getInts(from, count), 0, count))
    case "f" => Some((values, from, count, i, to) =>
        to.putInts(i, bits(values.getFloats(from, count)), 0, count))
    case "g" => Some { (values, from, count, i, to) =>
        to.reserveValues(i, count).asDoubleBuffer().put(values.getDoubles(from, count)); ()
      }
    case long if long == "l" || long.startsWith("tsu:") =>
      Some { (values, from, count, i, to) =>
        to.reserveValues(i, count).asLongBuffer().put(values.getLongs(from, count)); ()
      }
    case _ => None
  }

  private def bits(floats: Array[Float]): Array[Int] = {
    val bits = new Array[Int](floats.length)
    var i = 0
    while (i < floats.length) {
      bits(i) = java.lang.Float.floatToRawIntBits(floats(i))
      i += 1
    }
    bits
  }
}

/** How many bytes the values of a column of texts or bytes have, added up over a batch. */
private[rows] final class TextEnds(i: Int, column: RowColumn) {
  private val isText = column.column.format == "u"
  private var ends = Array(0L)

  def load(batch: ColumnarBatch): Unit = {
    val vector = batch.column(i)
    if (ends.length <= batch.numRows) ends = new Array(batch.numRows + 1)
    var row = 0
    while (row < batch.numRows) {
      ends(row + 1) = ends(row) + (if (vector.isNullAt(row)) 0 else length(vector, row))
      row += 1
    }
  }

  private def length(vector: ColumnVector, row: Int): Int = vector match {
    case written: WritableColumnVector if !written.hasDictionary => written.getArrayLength(row)
    case _ if isText => vector.getUTF8String(row).numBytes
    case _ => vector.getBinary(row).length
  }

  def bytes(from: Int, count: Int): Long = ends(from + count) - ends(from)
}

/**
 * What Spark reads as batches of columns, and would only make rows of in the end. Its cache is read
 * as rows: Spark keeps each batch of the cache until the partition's context ends.
 */
private[rows] object ColumnarPlan {
  /** None: Spark computes rows. Computes the stages in front of a shuffle. */
  def batches(data: DataFrame): Option[RDD[ColumnarBatch]] = {
    val query = data.queryExecution
    scan(query.executedPlan).map { plan =>
      // SQLExecutionRDD makes the session's settings known to the tasks. It passes on what it gets.
      val passedOn = plan.executeColumnar().asInstanceOf[RDD[InternalRow]]
      new SQLExecutionRDD(passedOn, query.sparkSession.sessionState.conf)
        .asInstanceOf[RDD[ColumnarBatch]]
    }
  }

  @tailrec private def scan(plan: SparkPlan): Option[SparkPlan] = plan match {
    case adaptive: AdaptiveSparkPlanExec => scan(adaptive.finalPhysicalPlan)
    case WholeStageCodegenExec(inside) => scan(inside)
    case ColumnarToRowExec(InputAdapter(columns)) => Some(columns).filter(isScan)
    case ColumnarToRowExec(columns) => Some(columns).filter(isScan)
    case _ => None
  }

  private def isScan(plan: SparkPlan): Boolean = plan match {
    case _: DataSourceScanExec | _: DataSourceV2ScanExecBase => true
    case _ => false
  }
}
