package supply.rows

import java.nio.ByteBuffer

import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types.Decimal
import org.apache.spark.unsafe.Platform

import supply.core.Buffers
import supply.protocol.{Column, Format}
import supply.source.ElementWriter

/**
 * Copies a column out of the vectors of batches, or one within a column: whole, from their memory. One
 * for each; its subclasses are for formats that have other memory in a vector.
 */
private[rows] abstract class ColumnCopy(column: Column) {
  protected val memory = new VectorMemory(column.nullable)

  /** Entries of the schema that it takes. */
  val entries: Int = column.entries.size

  /**
   * Whether these values can be copied: `write` is then for them, until the next call. The vector is
   * opened, as [[VectorMemory]] says. It may be the child of one that is null in the rows `within`;
   * null: in none of them.
   */
  final def load(vector: AnyRef, rows: Int, within: Array[Byte] = null): Boolean =
    // Without a row, a vector may have no memory.
    rows == 0 || loadSome(vector, rows, within)

  protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean

  /** The same for the child `number` of these lists or maps, which have been loaded. */
  final def loadChild(lists: AnyRef, number: Int, in: VectorMemory): Boolean =
    load(VectorMemory.child(lists, number), in.childRows, in.between)

  /** Bytes of `count` values from row `from` on, without those that [[ElementBytes]] counts. */
  def bytes(from: Int, count: Int): Long = 0

  /** Writes `count` values from row `from` on as those of the entry `entry`. */
  final def write(from: Int, count: Int, entry: Int, to: ElementWriter): Unit = {
    writeValues(from, count, entry, to)
    if (nulls != null) markNulls(from, count, entry, to)
  }

  protected def markNulls(from: Int, count: Int, entry: Int, to: ElementWriter): Unit =
    if (column.nullable) to.markNulls(entry, nulls, from, count)
    else to.clear(entry, nulls, from, count)

  protected def writeValues(from: Int, count: Int, entry: Int, to: ElementWriter): Unit

  /** A byte for each row, 1 is null; null: no row is. */
  final def nulls: Array[Byte] = memory.nulls
}

private[rows] object ColumnCopy {
  private val Decimals = """d:([0-9]+),.*""".r

  /** Of a decimal in a block. */
  private[rows] final val DecimalBytes = 16

  def of(column: Column): ColumnCopy = Format.of(column) match {
    case Format.Bits => new BitsCopy(column)
    case Format.Variable => new BytesCopy(column)
    case Format.Struct => new StructsCopy(column, column.children.map(of).toArray)
    case Format.Lists if column.format == "+m" =>
      val within = column.children.head.children
      new MapsCopy(column, of(within(0)), of(within(1)))
    case Format.Lists => new ListsCopy(column, of(column.children.head))
    case Format.FixedLists(length) =>
      new FixedListsCopy(column, of(column.children.head), length)
    case Format.Fixed(width) => (column.format, SparkTypes.listLength(column)) match {
        case (_, Some(length)) => new NumberListsCopy(column, length, width)
        case (Decimals(precision), _) if precision.toInt <= Decimal.MAX_LONG_DIGITS =>
          new SmallDecimalsCopy(column,
            if (precision.toInt <= Decimal.MAX_INT_DIGITS) 4 else 8)
        case (Decimals(_), _) => new LargeDecimalsCopy(column)
        case _ => new NumbersCopy(column, width)
      }
    case Format.Views => throw new IllegalArgumentException(column.format)
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
private final class NumbersCopy(column: Column, width: Int) extends ColumnCopy(column) {
  override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean =
    memory.loadValues(vector, rows, column.format, width, within)

  override protected def writeValues(from: Int, count: Int, entry: Int, to: ElementWriter): Unit =
    Buffers.put(memory.base, memory.offset + width.toLong * from, width * count,
      to.reserveValues(entry, count))
}

private final class BitsCopy(column: Column) extends ColumnCopy(column) {
  private var own = Array.emptyByteArray

  /** A byte for each row. */
  private var values = own

  override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean =
    memory.loadValues(vector, rows, column.format, 1, within) && {
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

  override protected def writeValues(from: Int, count: Int, entry: Int, to: ElementWriter): Unit =
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
private final class BytesCopy(column: Column) extends ColumnCopy(column) {
  private val format = column.format

  private val lengths = new RowSums

  override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean =
    memory.loadBytes(vector, rows, format, within) && {
      val found = memory.lengths
      lengths.load(rows, found(_).toLong)
      true
    }

  override def bytes(from: Int, count: Int): Long = lengths(from, count)

  override protected def writeValues(from: Int, count: Int, entry: Int, to: ElementWriter): Unit = {
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

/** Decimals that vectors have as 32 or 64 bits. */
private final class SmallDecimalsCopy(column: Column, ownWidth: Int)
    extends ColumnCopy(column) {
  private var width = ownWidth

  override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean = {
    width = if (vector.isInstanceOf[WritableColumnVector]) ownWidth else ColumnCopy.DecimalBytes
    memory.loadValues(vector, rows, column.format, width, within)
  }

  override protected def writeValues(from: Int, count: Int, entry: Int, to: ElementWriter): Unit = {
    val space = to.reserveValues(entry, count)
    val start = memory.offset + width.toLong * from
    if (width == ColumnCopy.DecimalBytes) Buffers.put(memory.base, start, width * count, space)
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
private final class LargeDecimalsCopy(column: Column) extends ColumnCopy(column) {
  private var isOwn = false

  override protected def loadSome(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean = {
    isOwn = vector.isInstanceOf[WritableColumnVector]
    if (isOwn) memory.loadBytes(vector, rows, column.format, within)
    else memory.loadValues(vector, rows, column.format, ColumnCopy.DecimalBytes, within)
  }

  override protected def writeValues(from: Int, count: Int, entry: Int, to: ElementWriter): Unit = {
    val space = to.reserveValues(entry, count)
    if (!isOwn) Buffers.put(memory.base, memory.offset + ColumnCopy.DecimalBytes.toLong * from,
      ColumnCopy.DecimalBytes * count, space)
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
