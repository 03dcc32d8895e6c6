package supply.rows

import java.util.Arrays

import org.apache.spark.sql.catalyst.InternalRow

import supply.source.{BatchCursor, BatchWriter, ElementWriter, GatheringCursor}

/** Rows that are read some hundred at a time, and written column by column. */
private[rows] final class RowRunCursor(
    rows: Iterator[InternalRow], columns: Array[RowColumn]) extends BatchCursor {
  import RowRunCursor._

  private val kept = new KeptColumns(columns)
  private val places = Array.range(0, RunRows)
  private var size = 0
  private var at = 0
  private var before = 0L

  override def next(): Boolean = {
    at += 1
    if (at >= size) fill()
    at < size
  }

  private def fill(): Unit = {
    before += size
    size = 0
    at = 0
    var bytes = 0L
    while (size < RunRows && bytes < RunBytes && rows.hasNext) {
      kept.keep(rows.next(), size)
      bytes += kept.textBytes(size)
      size += 1
    }
  }

  override def ready: Int = size - at

  override def bytes(count: Int): Long = kept.bytes(places, at, count)

  override def write(to: BatchWriter, count: Int): Unit = {
    kept.write(to, at, count)
    at += count - 1
  }

  override def write(to: ElementWriter): Unit = kept.write(to, at)

  override def describe: String = s"row ${before + at} of its partition"

  override def close(): Unit = ()
}

private[rows] object RowRunCursor {
  private final val RunRows = 256
  private final val RunBytes = 128 << 10

  /** Values that are wider are copied straight into the block. */
  private final val Widest = 128

  /** Whether reading in runs is faster than row by row: it copies each value once more. */
  def isFaster(columns: IndexedSeq[RowColumn]): Boolean =
    KeptColumns.canKeep(columns.toArray) && columns.forall(column =>
      column.width <= Widest && column.column.format != "z")
}

/** Rows of which those of many places can be written at once. */
private[rows] final class GatheredRowCursor(
    rows: Iterator[InternalRow], columns: Array[RowColumn]) extends GatheringCursor {
  private val kept = new KeptRows(columns)
  private var row: InternalRow = _
  private var taken = 0L

  /** The place whose row is the current one; -1: it is the newest one. */
  private var recalled = -1

  override def next(): Boolean = {
    recalled = -1
    val more = rows.hasNext
    if (more) {
      row = rows.next()
      taken += 1
    }
    more
  }

  override def keep(place: Int): Unit = {
    kept.columns.keep(row, place)
    kept.number(place, taken - 1)
  }

  override def recall(place: Int): Unit = recalled = place

  override def write(to: ElementWriter): Unit =
    if (recalled >= 0) kept.columns.write(to, recalled) else RowColumn.write(columns, row, to)

  override def bytes(places: Array[Int], from: Int, count: Int): Long =
    kept.columns.bytes(places, from, count)

  override def write(to: BatchWriter, places: Array[Int], from: Int, count: Int): Unit =
    kept.columns.write(to, places, from, count)

  override def describe: String =
    s"row ${if (recalled >= 0) kept.number(recalled) else taken - 1} of its partition"

  override def close(): Unit = ()
}

/** Kept rows, and the number of each in its partition. */
private[rows] final class KeptRows(of: Array[RowColumn]) {
  val columns = new KeptColumns(of)
  private var numbers = Array.emptyLongArray

  def number(place: Int): Long = numbers(place)

  def number(place: Int, number: Long): Unit = {
    if (place >= numbers.length) numbers = Arrays.copyOf(numbers, math.max(64, 2 * place))
    numbers(place) = number
  }

  /** Those of `count` rows that follow each other. */
  def number(places: Array[Int], from: Int, count: Int, first: Long): Unit = {
    var k = 0
    while (k < count) {
      number(places(from + k), first + k)
      k += 1
    }
  }
}
