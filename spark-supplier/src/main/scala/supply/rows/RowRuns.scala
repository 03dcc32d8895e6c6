package supply.rows

import java.util.Arrays

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

import supply.source.Draws

/** Rows of a partition, each of which is valid until the next one, and their numbers there. */
private[rows] abstract class NumberedRows {
  def hasNext: Boolean
  def next(): InternalRow

  /** Of the row that `next` has returned. */
  def number: Long
}

private[rows] final class RowsInOrder(rows: Iterator[InternalRow]) extends NumberedRows {
  private var taken = 0L

  override def hasNext: Boolean = rows.hasNext

  override def next(): InternalRow = {
    taken += 1
    rows.next()
  }

  override def number: Long = taken - 1
}

/** Rows in the order of [[Draws]]. They are copied: Spark reuses the memory of its rows. */
private[rows] final class ShuffledRows(rows: Iterator[InternalRow], buffer: Int, seed: Long)
    extends NumberedRows {
  private var kept = new Array[InternalRow](64)
  private var numbers = new Array[Long](64)
  private var taken = 0L
  private val draws = new Draws(buffer, seed)(keepNext)
  private var isAhead = false
  private var hasMore = false

  private def keepNext(places: Array[Int], count: Int): Int = {
    var i = 0
    while (i < count && rows.hasNext) {
      keep(rows.next(), places(i))
      i += 1
    }
    i
  }

  private def keep(row: InternalRow, place: Int): Unit = {
    if (place >= kept.length) {
      kept = Arrays.copyOf(kept, 2 * place)
      numbers = Arrays.copyOf(numbers, 2 * place)
    }
    row match {
      case unsafe: UnsafeRow if kept(place).isInstanceOf[UnsafeRow] =>
        kept(place).asInstanceOf[UnsafeRow].copyFrom(unsafe)
      case _ => kept(place) = row.copy()
    }
    numbers(place) = taken
    taken += 1
  }

  override def hasNext: Boolean = {
    if (!isAhead) hasMore = draws.next()
    isAhead = true
    hasMore
  }

  override def next(): InternalRow = {
    isAhead = false
    kept(draws.place)
  }

  override def number: Long = numbers(draws.place)
}

/** Rows that Spark computes: some hundred at a time, column by column. */
private[rows] final class RowRuns(rows: NumberedRows, columns: Array[RowColumn])
    extends Runs(columns) {
  import RowRuns._

  private val values = columns.map(column => new RunColumn(column.column))
  private val widths = columns.map(_.widthInRow)
  private val numbers = new Array[Long](Runs.Rows)

  /** A row that gets a run of its own. */
  private var alone: InternalRow = _

  override def next(): Boolean = {
    size = 0
    begin(mayRefer = alone != null)
    if (alone != null) {
      add(alone)
      alone = null
    } else {
      var bytes = 0L
      while (size < Runs.Rows && bytes < RunBytes && rows.hasNext) {
        val row = rows.next()
        val rowBytes = row match {
          case unsafe: UnsafeRow => unsafe.getSizeInBytes.toLong
          case _ => 0
        }
        if (rowBytes < AloneBytes) {
          add(row)
          bytes = if (rowBytes > 0) bytes + rowBytes else values.iterator.map(_.bytes).sum
        } else {
          bytes = RunBytes
          if (size > 0) alone = row
          else {
            begin(mayRefer = true)
            add(row)
          }
        }
      }
    }
    var i = 0
    while (i < columns.length) {
      copies(i).load(values(i), size)
      i += 1
    }
    size > 0
  }

  private def begin(mayRefer: Boolean): Unit = {
    var i = 0
    while (i < values.length) {
      values(i).begin(mayRefer)
      i += 1
    }
  }

  private def add(row: InternalRow): Unit = {
    numbers(size) = rows.number
    size += 1
    row match {
      case unsafe: UnsafeRow =>
        val base = unsafe.getBaseObject
        val fields =
          unsafe.getBaseOffset + UnsafeRow.calculateBitSetWidthInBytes(unsafe.numFields)
        val hasNull = unsafe.anyNull()
        var i = 0
        while (i < columns.length) {
          if (widths(i) == 0 || hasNull && unsafe.isNullAt(i))
            columns(i).append(unsafe, i, values(i))
          else values(i).copy(base, fields + 8L * i, widths(i))
          i += 1
        }
      case other => for (i <- columns.indices) columns(i).append(other, i, values(i))
    }
  }

  override def number(at: Int): Long = numbers(at)

  override def close(): Unit = ()
}

private object RowRuns {
  /** So that a run stays in the processor's cache until it is written. */
  private final val RunBytes = 128 << 10

  /** A row with more is copied into the block at once. */
  private final val AloneBytes = 16 << 10
}
