package supply.rows

import scala.jdk.CollectionConverters._

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}
import org.apache.spark.supply.VectorInternals
import org.apache.spark.{Partition, TaskContext}

import supply.source.{BatchCursor, BatchWriter, ElementCursor, ElementWriter, GatheringCursor, KeepingCursor, PartitionSizes}

/** The rows of a DataFrame that Spark computes as batches of columns. */
private[rows] final class ColumnSource(batches: ColumnBatches,
    columns: IndexedSeq[RowColumn], rowType: StructType, sizes: Option[PartitionSizes])
    extends DataFrameSource(columns, sizes) {
  override def rdd: RDD[ColumnarBatch] = batches.rdd

  override def openInOrder(partition: Partition, context: TaskContext): ElementCursor =
    new ColumnCursor(rdd.iterator(partition, context), columns.toArray, batches.areOurs)

  override def open(partition: Partition, context: TaskContext): KeepingCursor = {
    val read = rdd.iterator(partition, context)
    if (KeptColumns.canKeep(columns.toArray))
      new ColumnCursor(read, columns.toArray, batches.areOurs)
    else {
      val toRow = UnsafeProjection.create(rowType)
      new RowCursor(read.flatMap(_.rowIterator.asScala).map(toRow), columns.toArray)
    }
  }
}

/** Rows in batches of columns: those of a batch are copied whole, where its vectors permit that. */
private[rows] final class ColumnCursor(batches: Iterator[ColumnarBatch], columns: Array[RowColumn],
    areOurs: Boolean) extends BatchCursor with GatheringCursor {
  private val many = columns.map(column => ColumnValues.of(column.column.format))
  private val copies = columns.map(column => ColumnCopy.of(column).orNull)

  /** Whether the column of this batch can be copied whole. */
  private val isLoaded = new Array[Boolean](columns.length)

  /** The entry of the schema that each column has. */
  private val entries = columns.scanLeft(0)(_ + _.entries)

  /** Bytes of a row that a writer reserves, without those of columns whose values differ in size. */
  private val fixedBytes =
    columns.indices.filter(i => columns(i).isReserved).map(columns(_).width.toLong).sum
  private val sized = columns.indices.filter(columns(_).width == 0).toArray

  /** Whether the bytes of each row of this batch are known: otherwise its rows go one by one. */
  private var areSizesKnown = false

  private var batch: ColumnarBatch = _
  private var size = 0

  /** The current row in the batch. */
  private var at = -1
  private var rowsBefore = 0L

  private lazy val kept = new KeptRows(columns)

  /** The place whose row is the current one; -1: it is the newest one. */
  private var recalled = -1

  override def next(): Boolean = {
    recalled = -1
    at += 1
    while (at >= size && { free(); batches.hasNext }) load(batches.next())
    at < size
  }

  private def load(next: ColumnarBatch): Unit = {
    rowsBefore += size
    batch = next
    size = next.numRows
    at = 0
    var i = 0
    while (i < columns.length) {
      isLoaded(i) = copies(i) != null && copies(i).load(next.column(i), size)
      i += 1
    }
    areSizesKnown = sized.forall(i => isLoaded(i) || isCounted(i))
  }

  private def isCounted(i: Int): Boolean = copies(i) match {
    case texts: BytesCopy =>
      texts.count(batch.column(i), size)
      true
    case _ => false
  }

  private def free(): Unit = if (batch != null) {
    VectorInternals.free(batch, areOurs)
    batch = null
  }

  override def ready: Int = if (areSizesKnown) size - at else 0

  override def bytes(count: Int): Long = {
    var bytes = count * fixedBytes
    var i = 0
    while (i < sized.length) {
      bytes += copies(sized(i)).bytes(at, count)
      i += 1
    }
    bytes
  }

  override def write(to: BatchWriter, count: Int): Unit = {
    var i = 0
    while (i < columns.length) {
      if (isLoaded(i)) copies(i).write(at, count, entries(i), to)
      else {
        val vector = batch.column(i)
        many(i) match {
          case Some(values) if !vector.hasNull => values.write(vector, at, count, entries(i), to)
          case _ => writeEach(i, count, to)
        }
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

  override def write(to: ElementWriter): Unit =
    if (recalled >= 0) kept.columns.write(to, recalled)
    else RowColumn.write(columns, batch.getRow(at), to)

  override def keep(place: Int): Unit = keep(Array(place), 0, 1)

  override def keepNext(places: Array[Int], count: Int): Int = {
    var i = 0
    while (i < count && next()) {
      val run = math.min(count - i, size - at)
      keep(places, i, run)
      at += run - 1
      i += run
    }
    i
  }

  /** Keeps `count` rows from the current one on. */
  private def keep(places: Array[Int], from: Int, count: Int): Unit = {
    var i = 0
    while (i < columns.length) {
      if (isLoaded(i)) kept.columns.keepRun(copies(i), i, at, places, from, count)
      else {
        var k = 0
        while (k < count) {
          kept.columns.keepValue(batch.getRow(at + k), i, places(from + k))
          k += 1
        }
      }
      i += 1
    }
    kept.number(places, from, count, rowsBefore + at)
  }

  override def recall(place: Int): Unit = recalled = place

  override def bytes(places: Array[Int], from: Int, count: Int): Long =
    kept.columns.bytes(places, from, count)

  override def write(to: BatchWriter, places: Array[Int], from: Int, count: Int): Unit =
    kept.columns.write(to, places, from, count)

  override def describe: String = {
    val number = if (recalled >= 0) kept.number(recalled) else rowsBefore + at
    s"row $number of its partition"
  }

  override def close(): Unit = free()
}

/**
 * Writes many values of a vector without memory of its own, none of which is null, as those of
 * column `i`.
 */
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
