package supply.rows

import java.util.Arrays

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.supply.HeldMemory
import org.apache.spark.unsafe.Platform

import supply.core.ConfigException
import supply.source.Draws

/** Rows that Spark computes: some hundred at a time, put together column by column. */
private[rows] abstract class RowRuns(columns: Array[RowColumn]) extends Runs(columns) {
  protected val values: Array[RunColumn] = columns.map(column => new RunColumn(column.column))
  protected val widths: Array[Int] = columns.map(_.widthInRow)

  override final def next(): Boolean = {
    size = 0
    fill()
    var i = 0
    while (i < columns.length) {
      copies(i).load(values(i), size)
      i += 1
    }
    size > 0
  }

  /** Puts the rows of a new run into `values`, and says how many these are. */
  protected def fill(): Unit

  /** `mayRefer`: the run has one row, whose memory stays until the next run. */
  protected final def begin(mayRefer: Boolean): Unit = {
    var i = 0
    while (i < values.length) {
      values(i).begin(mayRefer)
      i += 1
    }
  }

  protected final def add(row: InternalRow): Unit = {
    size += 1
    row match {
      case unsafe: UnsafeRow =>
        val base = unsafe.getBaseObject
        val fields =
          unsafe.getBaseOffset + UnsafeRow.calculateBitSetWidthInBytes(unsafe.numFields)
        val hasNull = unsafe.anyNull()
        var i = 0
        while (i < columns.length) {
          if (hasNull && unsafe.isNullAt(i)) values(i).putNull()
          else if (widths(i) == 0) columns(i).value.append(unsafe, i, values(i))
          else values(i).copy(base, fields + 8L * i, widths(i))
          i += 1
        }
      case other => for (i <- columns.indices) columns(i).append(other, i, values(i))
    }
  }

  override def close(): Unit = ()
}

private object RowRuns {
  /** So that a run stays in the processor's cache until it is written. */
  final val RunBytes = 128 << 10

  /** A row with more is copied into the block at once. */
  final val AloneBytes = 16 << 10

  def bytes(row: InternalRow): Int = row match {
    case unsafe: UnsafeRow => unsafe.getSizeInBytes
    case _ => 0
  }
}

/** Rows in the order of Spark, each of which is valid until the next one. */
private[rows] final class RowsInOrder(rows: Iterator[InternalRow], columns: Array[RowColumn])
    extends RowRuns(columns) {
  import RowRuns._

  private var added = 0L

  /** A row that gets a run of its own. */
  private var alone: InternalRow = _

  override protected def fill(): Unit = {
    begin(mayRefer = alone != null)
    if (alone != null) {
      add(alone)
      alone = null
    } else {
      var read = 0L
      while (size < Runs.Rows && read < RunBytes && rows.hasNext) {
        val row = rows.next()
        val rowBytes = bytes(row)
        if (rowBytes < AloneBytes) {
          add(row)
          read = if (rowBytes > 0) read + rowBytes else values.iterator.map(_.bytes).sum
        } else {
          read = RunBytes
          if (size > 0) alone = row
          else {
            begin(mayRefer = true)
            add(row)
          }
        }
      }
    }
    added += size
  }

  override def number(at: Int): Long = added - size + at
}

/**
 * Rows in the order of [[Draws]]. They are copied: Spark reuses the memory of its rows. Those of a run
 * are drawn together, and each column is gathered from them.
 */
private[rows] final class ShuffledRows(rows: Iterator[InternalRow], columns: Array[RowColumn],
    buffer: Int, seed: Long, context: TaskContext) extends RowRuns(columns) {
  import RowRuns._

  private val memory = new HeldMemory(context)

  private var kept = new Array[InternalRow](64)
  private var numbers = new Array[Long](64)
  private var taken = 0L
  private var keptBytes = 0L
  private val draws = new Draws(buffer, seed, rowsOfRun)(keepNext)

  /** The first of the drawn rows that is in the run. */
  private var first = 0
  private val run = new Array[InternalRow](Runs.Rows)

  /** Where the fields of each row begin, as Spark's Platform names the place. */
  private val bases = new Array[AnyRef](Runs.Rows)
  private val fields = new Array[Long](Runs.Rows)

  private def rowsOfRun: Int =
    if (keptBytes == 0) Runs.Rows
    else math.max(1, math.min(Runs.Rows, RunBytes * taken / keptBytes)).toInt

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
      case unsafe: UnsafeRow => keep(unsafe, place)
      case _ => kept(place) = row.copy()
    }
    numbers(place) = taken
    taken += 1
  }

  private def keep(row: UnsafeRow, place: Int): Unit = {
    val bytes = row.getSizeInBytes
    var space = kept(place) match {
      case earlier: UnsafeRow => earlier.getBaseObject.asInstanceOf[Array[Byte]]
      case _ =>
        kept(place) = new UnsafeRow(row.numFields)
        Array.emptyByteArray
    }
    if (space.length < bytes) {
      keptBytes += bytes - space.length
      if (!memory.hold(keptBytes)) throw new ConfigException(
        s"the rows of --shuffle-buffer need more than $keptBytes bytes, and the executor's memory has not got them: set a " +
          "smaller --shuffle-buffer, or a larger spark.executor.memory")
      space = new Array[Byte](bytes)
    }
    Platform.copyMemory(row.getBaseObject, row.getBaseOffset, space,
      Platform.BYTE_ARRAY_OFFSET.toLong, bytes.toLong)
    kept(place).asInstanceOf[UnsafeRow].pointTo(space, Platform.BYTE_ARRAY_OFFSET.toLong, bytes)
  }

  override protected def fill(): Unit = if (draws.next()) {
    val isAlone = draw()
    draws.at += size - 1
    begin(mayRefer = isAlone)
    if (!run(0).isInstanceOf[UnsafeRow]) {
      val drawn = size
      size = 0
      while (size < drawn) add(run(size))
    } else gather()
  }

  /** Takes rows into the run. Returns whether it has one row, a large one. */
  private def draw(): Boolean = {
    first = draws.at
    var runBytes = 0L
    while (first + size < draws.count && runBytes < RunBytes) {
      val row = kept(draws.drawn(first + size))
      val rowBytes = bytes(row)
      if (size > 0 && rowBytes >= AloneBytes) return false
      run(size) = row
      size += 1
      if (rowBytes >= AloneBytes) return true
      runBytes += rowBytes
    }
    false
  }

  private def gather(): Unit = {
    val wordBytes = UnsafeRow.calculateBitSetWidthInBytes(columns.length)
    var hasNull = false
    var k = 0
    while (k < size) {
      val row = run(k).asInstanceOf[UnsafeRow]
      bases(k) = row.getBaseObject
      fields(k) = row.getBaseOffset + wordBytes
      hasNull |= row.anyNull()
      k += 1
    }
    var i = 0
    while (i < columns.length) {
      if (widths(i) == 0) {
        k = 0
        while (k < size) {
          columns(i).append(run(k), i, values(i))
          k += 1
        }
      } else {
        values(i).gather(bases, fields, 8L * i, size)
        if (hasNull && columns(i).column.nullable)
          values(i).gatherNulls(bases, fields, 8L * (i >> 6) - wordBytes, i & 63, size)
      }
      i += 1
    }
  }

  override def number(at: Int): Long = numbers(draws.drawn(first + at))

  override def close(): Unit = {
    kept = Array.empty
    memory.release()
  }
}
