package supply.rows

import java.nio.ByteBuffer

import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types.Decimal
import org.apache.spark.sql.vectorized.ColumnVector
import org.apache.spark.unsafe.Platform

import supply.core.Buffers
import supply.source.BatchWriter

/**
 * Copies a column out of the vectors of batches: whole, from their memory. One for each column; its
 * subclasses are for formats that have other memory in a vector.
 */
private[rows] abstract class ColumnCopy(column: RowColumn) {
  protected val memory = new VectorMemory

  /** Whether these values can be copied: `write` is then for them, until the next call. */
  def load(vector: ColumnVector, rows: Int): Boolean

  /** Writes `count` values from row `from` on as those of column `i`. */
  final def write(from: Int, count: Int, i: Int, to: BatchWriter): Unit = {
    writeValues(from, count, i, to)
    if (nulls != null) to.markNulls(i, nulls, from, count)
  }

  protected def writeValues(from: Int, count: Int, i: Int, to: BatchWriter): Unit

  /** A byte for each row, 1 is null; null: no row is. */
  final def nulls: Array[Byte] = if (column.column.nullable) memory.nulls else null
}

private[rows] object ColumnCopy {
  private val List = """\+w:([0-9]+)""".r
  private val Decimals = """d:([0-9]+),.*""".r

  /** None: values of such columns are written one by one. */
  def of(column: RowColumn): Option[ColumnCopy] = column.column.format match {
    case "b" => Some(new BitsCopy(column))
    case "u" | "z" => Some(new BytesCopy(column))
    case "c" | "s" | "i" | "l" | "f" | "g" | "tdD" => Some(new NumbersCopy(column))
    case instant if instant.startsWith("tsu:") => Some(new NumbersCopy(column))
    case Decimals(precision) if precision.toInt <= Decimal.MAX_LONG_DIGITS =>
      Some(new SmallDecimalsCopy(column, if (precision.toInt <= Decimal.MAX_INT_DIGITS) 4 else 8))
    case Decimals(_) => Some(new LargeDecimalsCopy(column))
    case List(length) if column.value.isInstanceOf[ListValue] =>
      Some(new ListsCopy(column, length.toInt))
    case _ => None
  }

  /** Copies the child's values of `count` rows, `width` bytes each: those that follow each other, at once. */
  private[rows] def spans(
      memory: VectorMemory, from: Int, count: Int, width: Int, to: ByteBuffer): Unit = {
    val starts = memory.starts
    val lengths = memory.lengths
    val end = from + count
    var row = from
    while (row < end) {
      val start = starts(row)
      var length = lengths(row)
      row += 1
      while (row < end && (lengths(row) == 0 || length > 0 && starts(row) == start + length)) {
        length += lengths(row)
        row += 1
      }
      Buffers.put(memory.base, memory.offset + width.toLong * start, width * length, to)
    }
  }
}

/** Numbers, dates and instants, which vectors have as blocks do. */
private final class NumbersCopy(column: RowColumn) extends ColumnCopy(column) {
  private val width = column.width

  override def load(vector: ColumnVector, rows: Int): Boolean =
    memory.loadValues(vector, rows, column.column.format, width)

  override protected def writeValues(from: Int, count: Int, i: Int, to: BatchWriter): Unit =
    Buffers.put(memory.base, memory.offset + width.toLong * from, width * count,
      to.reserveValues(i, count))
}

private final class BitsCopy(column: RowColumn) extends ColumnCopy(column) {
  private var own = Array.emptyByteArray

  /** A byte for each row. */
  private var values = own

  override def load(vector: ColumnVector, rows: Int): Boolean =
    memory.loadValues(vector, rows, column.column.format, 1) && {
      memory.base match {
        case bytes: Array[Byte] => values = bytes
        case _ =>
          if (own.length < rows) own = new Array(math.max(rows, 2 * own.length))
          if (vector.isInstanceOf[WritableColumnVector])
            Platform.copyMemory(null, memory.offset, own, Platform.BYTE_ARRAY_OFFSET.toLong,
              rows.toLong)
          else VectorMemory.expand(memory.offset, own, rows, flip = 0)
          values = own
      }
      true
    }

  override protected def writeValues(from: Int, count: Int, i: Int, to: BatchWriter): Unit =
    to.putBits(i, values, from, count)
}

/** Texts and bytes. Neighbours in the vector's memory are copied together. */
private[rows] final class BytesCopy(column: RowColumn) extends ColumnCopy(column) {
  private val format = column.column.format

  /** The bytes of the values up to each row, added up. */
  private var ends = Array(0L)

  override def load(vector: ColumnVector, rows: Int): Boolean = {
    val isLoaded = memory.loadBytes(vector, rows, format)
    if (ends.length <= rows) ends = new Array(rows + 1)
    var row = 0
    while (row < rows) {
      ends(row + 1) = ends(row) +
        (if (isLoaded) memory.lengths(row) else BytesCopy.length(vector, row, format == "u"))
      row += 1
    }
    isLoaded
  }

  /** Also if the values cannot be copied. */
  def bytes(from: Int, count: Int): Long = ends(from + count) - ends(from)

  override protected def writeValues(from: Int, count: Int, i: Int, to: BatchWriter): Unit = {
    val space = to.reserveBytes(i, memory.lengths, from, count)
    if (memory.pieces != null) {
      var row = from
      while (row < from + count) {
        space.put(memory.pieces(row))
        row += 1
      }
    } else ColumnCopy.spans(memory, from, count, 1, space)
  }
}

private object BytesCopy {
  private def length(vector: ColumnVector, row: Int, isText: Boolean): Int =
    if (vector.isNullAt(row)) 0
    else if (isText) vector.getUTF8String(row).numBytes
    else vector.getBinary(row).length
}

/** Decimals that vectors have as 32 or 64 bits. */
private final class SmallDecimalsCopy(column: RowColumn, ownWidth: Int)
    extends ColumnCopy(column) {
  private var width = ownWidth

  override def load(vector: ColumnVector, rows: Int): Boolean = {
    width = if (vector.isInstanceOf[WritableColumnVector]) ownWidth else column.width
    memory.loadValues(vector, rows, column.column.format, width)
  }

  override protected def writeValues(from: Int, count: Int, i: Int, to: BatchWriter): Unit = {
    val space = to.reserveValues(i, count)
    val start = memory.offset + width.toLong * from
    if (width == column.width) Buffers.put(memory.base, start, width * count, space)
    else {
      var at = start
      while (at < start + width.toLong * count) {
        val value =
          if (width == 8) Platform.getLong(memory.base, at)
          else Platform.getInt(memory.base, at).toLong
        space.putLong(value).putLong(value >> 63)
        at += width
      }
    }
  }
}

/** Decimals that vectors of Spark have as the bytes of a BigInteger. */
private final class LargeDecimalsCopy(column: RowColumn) extends ColumnCopy(column) {
  private var isOwn = false

  override def load(vector: ColumnVector, rows: Int): Boolean = {
    isOwn = vector.isInstanceOf[WritableColumnVector]
    if (isOwn) memory.loadBytes(vector, rows, column.column.format)
    else memory.loadValues(vector, rows, column.column.format, column.width)
  }

  override protected def writeValues(from: Int, count: Int, i: Int, to: BatchWriter): Unit = {
    val space = to.reserveValues(i, count)
    if (!isOwn) Buffers.put(memory.base, memory.offset + 16L * from, 16 * count, space)
    else {
      var row = from
      while (row < from + count) {
        if (memory.pieces != null)
          put(memory.pieces(row), Platform.BYTE_ARRAY_OFFSET.toLong, memory.lengths(row), space)
        else put(memory.base, memory.offset + memory.starts(row), memory.lengths(row), space)
        row += 1
      }
    }
  }

  /** The first byte is the highest one. */
  private def put(base: AnyRef, offset: Long, length: Int, to: ByteBuffer): Unit = {
    var high = if (length > 0 && Platform.getByte(base, offset) < 0) -1L else 0L
    var low = high
    var i = 0
    while (i < length) {
      high = high << 8 | low >>> 56
      low = low << 8 | Platform.getByte(base, offset + i) & 0xff
      i += 1
    }
    to.putLong(low).putLong(high)
    ()
  }
}

/** Arrays of `length` numbers each. Others are written one by one, which refuses them. */
private final class ListsCopy(column: RowColumn, length: Int) extends ColumnCopy(column) {
  private val numberWidth = column.width / length

  override def load(vector: ColumnVector, rows: Int): Boolean =
    memory.loadLists(vector, rows, column.column.childFormat, numberWidth) && {
      var row = 0
      while (row < rows && (memory.lengths(row) == length || isNull(row))) row += 1
      row == rows
    }

  private def isNull(row: Int) = nulls != null && nulls(row) != 0

  override protected def writeValues(from: Int, count: Int, i: Int, to: BatchWriter): Unit = {
    val space = to.reserveValues(i, count)
    if (nulls == null) ColumnCopy.spans(memory, from, count, numberWidth, space)
    else {
      var row = from
      while (row < from + count) {
        if (isNull(row)) space.position(space.position() + column.width)
        else Buffers.put(memory.base, memory.offset + numberWidth.toLong * memory.starts(row),
          column.width, space)
        row += 1
      }
    }
  }
}
