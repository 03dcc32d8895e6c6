package supply.rows

import java.nio.ByteBuffer

import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types.Decimal
import org.apache.spark.sql.vectorized.ColumnVector
import org.apache.spark.unsafe.Platform

import supply.core.Buffers
import supply.source.BatchWriter

/**
 * Copies a column out of the vectors of batches, or one within a column: whole, from their memory. One
 * for each; its subclasses are for formats that have other memory in a vector.
 */
private[rows] abstract class ColumnCopy(column: RowColumn) {
  protected val memory = new VectorMemory(column.column.nullable)
  private val reservedBytes = if (column.isReserved) column.width.toLong else 0

  /** Whether these values can be copied: `write` is then for them, until the next call. */
  final def load(vector: ColumnVector, rows: Int): Boolean =
    load(VectorMemory.opened(vector), rows, null)

  /** The same for the child of a vector, which is null in the rows `within`; null: in none of them. */
  final def load(opened: AnyRef, rows: Int, within: Array[Byte]): Boolean =
    // Without a row, a vector may have no memory.
    rows == 0 || loadSome(opened, rows, within)

  protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean

  /** The same for the child `number` of these lists or maps, which have been loaded. */
  final def loadChild(lists: AnyRef, number: Int, in: VectorMemory): Boolean =
    load(VectorMemory.child(lists, number), in.childRows, in.between)

  /** Bytes of `count` values from row `from` on, without those that [[ElementBytes]] counts. */
  def bytes(from: Int, count: Int): Long = reservedBytes * count

  /** The same of a value that is not there. */
  def blankBytes: Long = reservedBytes

  /** Writes `count` values from row `from` on as those of the entry `entry`. */
  final def write(from: Int, count: Int, entry: Int, to: BatchWriter): Unit = {
    writeValues(from, count, entry, to)
    if (nulls != null) markNulls(from, count, entry, to)
  }

  protected def markNulls(from: Int, count: Int, entry: Int, to: BatchWriter): Unit =
    if (column.column.nullable) to.markNulls(entry, nulls, from, count)
    else to.clear(entry, nulls, from, count)

  protected def writeValues(from: Int, count: Int, entry: Int, to: BatchWriter): Unit

  /** A byte for each row, 1 is null; null: no row is. */
  final def nulls: Array[Byte] = memory.nulls
}

private[rows] object ColumnCopy {
  private val Decimals = """d:([0-9]+),.*""".r

  /** None: values of such columns are written one by one. */
  def of(column: RowColumn): Option[ColumnCopy] = (column.value, column.column.format) match {
    case (_: VariantValue, _) => None
    case (list: ListValue, _) => Some(new NumberListsCopy(column, list))
    case (list: VaryingListValue, _) => of(list.item).map(new ListsCopy(column, list.item, _))
    case (list: FixedListValue, _) =>
      of(list.item).map(new FixedListsCopy(column, _, list.length))
    case (map: MapValue, _) => for (keys <- of(map.keys); values <- of(map.values))
        yield new MapsCopy(column, map, keys, values)
    case (struct: StructValue, _) =>
      val fields = struct.fields.map(of)
      if (fields.forall(_.isDefined)) Some(new StructsCopy(column, struct, fields.map(_.get)))
      else None
    case (_, "b") => Some(new BitsCopy(column))
    case (_, "u" | "z") => Some(new BytesCopy(column))
    case (_, "c" | "s" | "i" | "l" | "f" | "g" | "tdD" | "tiM" | "tDu" | "ttn") =>
      Some(new NumbersCopy(column))
    case (_, instant) if instant.startsWith("tsu:") => Some(new NumbersCopy(column))
    case (_, Decimals(precision)) if precision.toInt <= Decimal.MAX_LONG_DIGITS =>
      Some(new SmallDecimalsCopy(column, if (precision.toInt <= Decimal.MAX_INT_DIGITS) 4 else 8))
    case (_, Decimals(_)) => Some(new LargeDecimalsCopy(column))
    case _ => None
  }

  /** Calls `use` with the first and the number of the child's values of these rows, which follow each other. */
  private[rows] def runs(memory: VectorMemory, from: Int, count: Int)(
      use: (Int, Int) => Unit): Unit = {
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
      if (length > 0) use(start, length)
    }
  }

  /** Copies the values of these rows, `width` bytes each, from `values` on. */
  private[rows] def copyRuns(rows: VectorMemory, from: Int, count: Int, values: VectorMemory,
      width: Int, to: ByteBuffer): Unit = runs(rows, from, count) { (start, length) =>
    Buffers.put(values.base, values.offset + width.toLong * start, width * length, to)
  }
}

/** Numbers, dates and instants, which vectors have as blocks do. */
private final class NumbersCopy(column: RowColumn) extends ColumnCopy(column) {
  private val width = column.width

  override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean =
    memory.loadValues(vector, rows, column.column.format, width, within)

  override protected def writeValues(from: Int, count: Int, entry: Int, to: BatchWriter): Unit =
    Buffers.put(memory.base, memory.offset + width.toLong * from, width * count,
      to.reserveValues(entry, count))
}

private final class BitsCopy(column: RowColumn) extends ColumnCopy(column) {
  private var own = Array.emptyByteArray

  /** A byte for each row. */
  private var values = own

  override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean =
    memory.loadValues(vector, rows, column.column.format, 1, within) && {
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

  override protected def writeValues(from: Int, count: Int, entry: Int, to: BatchWriter): Unit =
    to.putBits(entry, values, from, count)
}

/** Numbers of each row of a batch, of which runs are added up. */
private[rows] final class RowSums {
  /** Of all rows before each. */
  private var sums = Array(0L)

  def load(rows: Int, of: Int => Long): Unit = {
    if (sums.length <= rows) sums = new Array(math.max(rows + 1, 2 * sums.length))
    var row = 0
    while (row < rows) {
      sums(row + 1) = sums(row) + of(row)
      row += 1
    }
  }

  def apply(from: Int, count: Int): Long = sums(from + count) - sums(from)
}

/** Texts and bytes. Neighbours in the vector's memory are copied together. */
private[rows] final class BytesCopy(column: RowColumn) extends ColumnCopy(column) {
  private val format = column.column.format

  private val lengths = new RowSums

  override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean =
    memory.loadBytes(vector, rows, format, within) && {
      val found = memory.lengths
      lengths.load(rows, found(_).toLong)
      true
    }

  /** For [[bytes]] of values that cannot be copied. */
  def count(vector: ColumnVector, rows: Int): Unit =
    lengths.load(rows, BytesCopy.length(vector, _, format == "u").toLong)

  override def bytes(from: Int, count: Int): Long = lengths(from, count)

  override protected def writeValues(from: Int, count: Int, entry: Int, to: BatchWriter): Unit = {
    val space = to.reserveBytes(entry, memory.lengths, from, count)
    if (memory.pieces != null) {
      var row = from
      while (row < from + count) {
        space.put(memory.pieces(row), memory.starts(row), memory.lengths(row))
        row += 1
      }
    } else ColumnCopy.copyRuns(memory, from, count, memory, 1, space)
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

  override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean = {
    width = if (vector.isInstanceOf[WritableColumnVector]) ownWidth else column.width
    memory.loadValues(vector, rows, column.column.format, width, within)
  }

  override protected def writeValues(from: Int, count: Int, entry: Int, to: BatchWriter): Unit = {
    val space = to.reserveValues(entry, count)
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

  override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean = {
    isOwn = vector.isInstanceOf[WritableColumnVector]
    if (isOwn) memory.loadBytes(vector, rows, column.column.format, within)
    else memory.loadValues(vector, rows, column.column.format, column.width, within)
  }

  override protected def writeValues(from: Int, count: Int, entry: Int, to: BatchWriter): Unit = {
    val space = to.reserveValues(entry, count)
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
