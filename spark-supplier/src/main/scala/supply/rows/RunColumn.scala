package supply.rows

import java.nio.{ByteBuffer, ByteOrder}
import java.util.Arrays

import org.apache.spark.unsafe.Platform

import supply.core.Buffers
import supply.protocol.Column

/**
 * The values of one column, or of one within a column, in a run of rows: a vector that a [[ColumnCopy]]
 * copies, whose values have the width that they have in a block. Booleans have a byte each. Reused for
 * each run.
 */
private[rows] final class RunColumn(column: Column) {
  import RunColumn._

  /** Of a list, its values; of a map, keys and values; of a struct, its fields. */
  val children: Array[RunColumn] = RunColumn.within(column).map(new RunColumn(_)).toArray

  private val isStruct = column.format == "+s"
  private val isBits = column.format == "b"

  /** Bytes of a value; 0: they differ, or stand in children. */
  private val width = if (children.isEmpty) RowColumn.widthOf(column) else 0
  private val hasSpans = width == 0 && !isStruct

  private var count = 0
  private var own = Array.emptyByteArray
  private var ownBuffer: ByteBuffer = _
  private var size = 0

  /** Where the values lie, or the bytes of texts: as Spark's Platform names the place. */
  var base: AnyRef = own
  var offset: Long = Start

  /** A byte for each value, 1 is null; null: no value is. */
  def nulls: Array[Byte] = if (hasNull) ownNulls else null
  private var hasNull = false
  private var ownNulls = Array.emptyByteArray

  /** Of texts and lists: where each begins, and how many bytes or values it has. */
  var starts: Array[Int] = Array.emptyIntArray
  var lengths: Array[Int] = Array.emptyIntArray

  /** Whether the run has one row, whose memory stays until the next one. */
  private var mayRefer = false

  /** A new run. Long values of the only row of a run are not copied here, but from the row into the block. */
  def begin(mayRefer: Boolean): Unit = {
    count = 0
    size = 0
    hasNull = false
    base = own
    offset = Start
    this.mayRefer = mayRefer && !isBits && column.format != "+m"
    var i = 0
    while (i < children.length) {
      // A list has more than one value, but its numbers are put at once.
      children(i).begin(this.mayRefer && (isStruct || children(i).width > 0))
      i += 1
    }
  }

  /** Bytes that the run has, about. */
  def bytes: Long = {
    var bytes = size + 4L * count
    var i = 0
    while (i < children.length) {
      bytes += children(i).bytes
      i += 1
    }
    bytes
  }

  def putByte(value: Byte): Unit = {
    val at = place(1)
    Platform.putByte(own, at, value)
  }

  def putShort(value: Short): Unit = {
    val at = place(2)
    Platform.putShort(own, at, value)
  }

  def putInt(value: Int): Unit = {
    val at = place(4)
    Platform.putInt(own, at, value)
  }

  def putLong(value: Long): Unit = {
    val at = place(8)
    Platform.putLong(own, at, value)
  }

  /** A value of `width` bytes at a place of Spark's Platform. */
  def copy(from: AnyRef, at: Long, width: Int): Unit = width match {
    case 8 => putLong(Platform.getLong(from, at))
    case 4 => putInt(Platform.getInt(from, at))
    case 2 => putShort(Platform.getShort(from, at))
    case _ => putByte(Platform.getByte(from, at))
  }

  /** Values of rows: at `shift` after each of these places. */
  def gather(bases: Array[AnyRef], places: Array[Long], shift: Long, values: Int): Unit = {
    reserve(values * width)
    val to = own
    var at = Start + size
    var k = 0
    width match {
      case 8 => while (k < values) {
          Platform.putLong(to, at, Platform.getLong(bases(k), places(k) + shift))
          at += 8
          k += 1
        }
      case 4 => while (k < values) {
          Platform.putInt(to, at, Platform.getInt(bases(k), places(k) + shift))
          at += 4
          k += 1
        }
      case _ => while (k < values) {
          Platform.copyMemory(bases(k), places(k) + shift, to, at, width.toLong)
          at += width
          k += 1
        }
    }
    size += values * width
    valid(values)
  }

  /** Of the last `values` values, those are null whose bit is set, in the word at `shift` after each of these places. */
  def gatherNulls(bases: Array[AnyRef], places: Array[Long], shift: Long, bit: Int,
      values: Int): Unit = {
    beginNulls()
    var k = 0
    while (k < values) {
      ownNulls(count - values + k) =
        (Platform.getLong(bases(k), places(k) + shift) >>> bit & 1).toByte
      k += 1
    }
  }

  /** The same for values that follow each other. */
  def copyMany(from: AnyRef, at: Long, values: Int): Unit = {
    val bytes = values * width
    if (mayRefer && bytes >= Long) refer(from, at)
    else {
      reserve(bytes)
      Platform.copyMemory(from, at, own, Start + size, bytes.toLong)
      size += bytes
    }
    valid(values)
  }

  /** Space for values of one width, to fill at once, little-endian. */
  def put(values: Int): ByteBuffer = {
    val bytes = values * width
    reserve(bytes)
    size += bytes
    valid(values)
    ownBuffer.limit(size).position(size - bytes)
  }

  /** A text, or bytes. */
  def putBytes(from: AnyRef, at: Long, bytes: Int): Unit = {
    if (mayRefer && bytes >= Long) {
      refer(from, at)
      putSpan(0, bytes)
    } else {
      reserve(bytes)
      Platform.copyMemory(from, at, own, Start + size, bytes.toLong)
      putSpan(size, bytes)
      size += bytes
    }
    valid(1)
  }

  /** Space for a text, or bytes, to fill at once, little-endian. */
  def putBytes(bytes: Int): ByteBuffer = {
    reserve(bytes)
    putSpan(size, bytes)
    size += bytes
    valid(1)
    ownBuffer.limit(size).position(size - bytes)
  }

  /** A list or a map with `values` values, which the caller then puts into the children. */
  def putList(values: Int): Unit = {
    putSpan(size, values)
    size += values
    valid(1)
  }

  /** A struct, whose fields the caller then puts into the children. */
  def putStruct(): Unit = valid(1)

  def putNull(): Unit = {
    if (width > 0) {
      reserve(width)
      size += width
    } else if (hasSpans) putSpan(size, 0)
    else children.foreach(_.putNull())
    if (column.nullable) beginNulls()
    valid(1)
    if (column.nullable) ownNulls(count - 1) = 1
  }

  private def beginNulls(): Unit = if (!hasNull) {
    reserveNulls(0)
    Arrays.fill(ownNulls, 0, count, 0: Byte)
    hasNull = true
  }

  private def refer(from: AnyRef, at: Long): Unit = {
    base = from
    offset = at
  }

  private def valid(values: Int): Unit = {
    if (hasNull) {
      reserveNulls(values)
      if (values == 1) ownNulls(count) = 0
      else Arrays.fill(ownNulls, count, count + values, 0: Byte)
    }
    count += values
  }

  private def reserveNulls(values: Int): Unit =
    if (ownNulls.length < count + values)
      ownNulls = Arrays.copyOf(ownNulls, math.max(count + values, 2 * count))

  private def putSpan(start: Int, length: Int): Unit = {
    if (count == starts.length) {
      starts = Arrays.copyOf(starts, math.max(64, 2 * count))
      lengths = Arrays.copyOf(lengths, starts.length)
    }
    starts(count) = start
    lengths(count) = length
  }

  /** Where the next value goes in `own`, which it may replace. */
  private def place(width: Int): Long = {
    reserve(width)
    val at = Start + size
    size += width
    valid(1)
    at
  }

  private def reserve(bytes: Int): Unit = {
    val end = Math.addExact(size, bytes)
    if (end > own.length) {
      val grown = math.max(2L * own.length, math.max(end, 64).toLong)
      own = Arrays.copyOf(own, math.min(grown, Buffers.MostBytes.toLong).toInt)
      ownBuffer = ByteBuffer.wrap(own).order(ByteOrder.LITTLE_ENDIAN)
      base = own
    }
  }
}

private[rows] object RunColumn {
  private final val Start = Platform.BYTE_ARRAY_OFFSET.toLong

  /** Shorter values are copied twice. */
  private final val Long = 4096

  private def within(column: Column): Seq[Column] =
    if (column.childFormat.nonEmpty) Seq(Column("item", column.childFormat))
    else if (column.format == "+m") column.children.head.children
    else column.children
}
