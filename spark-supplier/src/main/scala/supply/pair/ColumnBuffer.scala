package supply.pair

import java.nio.ByteBuffer

import supply.protocol.Layout.{BlockColumn => At}
import supply.protocol.{Column, Format, Layout}

/**
 * The values of one column of the block under construction, in Arrow's layout. They are staged in
 * memory of their own and appended when the block is closed; only the data of the main column
 * stands in the slot from the start.
 */
private[pair] sealed abstract class ColumnBuffer(column: Column) {

  /** Which elements are not null; null where the column has none. */
  private val validity: StagedBits = if (column.nullable) new StagedBits else null

  /** Forgets all elements. */
  final def clear(): Unit = truncate(0)

  /** Forgets what has come after element `elements`. */
  final def truncate(elements: Int): Unit = {
    if (validity != null) validity.truncate(elements)
    truncateValues(elements)
  }

  /**
   * An element without a value: its place holds zeros, or no bytes. Returns what it takes besides
   * [[elementBytes]].
   */
  final def putNull(): Int = {
    require(validity != null, s"column '${column.name}' is not nullable")
    val bytes = putEmpty()
    validity.truncate(validity.size - 1)
    validity.put(false)
    bytes
  }

  /** What an element takes at most, in bytes, besides what is reserved for it. */
  final def elementBytes: Int = valueBytes + (if (validity == null) 0 else 1)

  /** What aligning its buffers takes at most, in bytes. */
  final def paddingBytes: Int =
    (valueBuffers + (if (validity == null) 0 else 1)) * Layout.Constant.BUFFER_ALIGNMENT

  /** Bytes of its buffers when it has `elements` elements, alignment included. */
  final def alignedBytes(elements: Int): Int =
    valuesAlignedBytes(elements) + (if (validity == null) 0 else Layout.aligned((elements + 7) / 8))

  /**
   * Copies its staged buffers into the slot, from `at` on; writes its [[Layout.BlockColumn]];
   * returns where they end.
   */
  final def append(slot: ByteBuffer, describedAt: Int, at: Int): Int = {
    val nulls = if (validity == null) 0 else validity.zeros
    slot.putInt(describedAt + At.nullCount, nulls)
    slot.putInt(describedAt + At.reserved, 0)
    if (nulls == 0) {
      noBuffer(slot, describedAt + At.validityOffset)
      appendValues(slot, describedAt, at)
    } else appendValues(slot, describedAt,
      describe(slot, describedAt + At.validityOffset, at, validity.copyTo(slot, at)))
  }

  /** To be called with every value. */
  protected final def valid(count: Int): Unit = if (validity != null) {
    var i = 0
    while (i < count) {
      validity.put(true)
      i += 1
    }
  }

  protected def putEmpty(): Int
  protected def truncateValues(elements: Int): Unit
  protected def valueBytes: Int
  protected def valueBuffers: Int = 1
  protected def valuesAlignedBytes(elements: Int): Int
  protected def appendValues(slot: ByteBuffer, describedAt: Int, at: Int): Int

  /** A buffer's offset stands in one field and its size in the next. Returns its aligned end. */
  protected final def describe(slot: ByteBuffer, offsetField: Int, at: Int, bytes: Int): Int = {
    slot.putInt(offsetField, at)
    slot.putInt(offsetField + Integer.BYTES, bytes)
    at + Layout.aligned(bytes)
  }

  protected final def noBuffer(slot: ByteBuffer, offsetField: Int): Unit = {
    describe(slot, offsetField, 0, 0); ()
  }
}

private[pair] object ColumnBuffer {

  /** @param main where the column's data goes where it is the main one */
  def of(column: Column, main: Option[DataInSlot]): ColumnBuffer = {
    def data = main.getOrElse(new StagedData)
    Format.of(column) match {
      case Format.Bits => new BooleanColumn(column)
      case Format.Variable => new BytesColumn(column, data)
      case Format.Fixed(Integer.BYTES) if column.childFormat.isEmpty => new IntColumn(column)
      case Format.Fixed(java.lang.Long.BYTES) if column.childFormat.isEmpty =>
        new LongColumn(column)
      case Format.Fixed(bytes) => new FixedColumn(column, bytes, data)
    }
  }
}

/** Values that are staged whole: their own buffer is all they have. */
private[pair] sealed abstract class StagedColumn(
    column: Column, staged: Staged) extends ColumnBuffer(column) {

  override protected final def truncateValues(elements: Int): Unit = staged.truncate(elements)

  override protected final def appendValues(slot: ByteBuffer, describedAt: Int, at: Int): Int = {
    noBuffer(slot, describedAt + At.offsetsOffset)
    describe(slot, describedAt + At.dataOffset, at, staged.copyTo(slot, at))
  }
}

/** Values of 32 bits. */
private[pair] final class IntColumn(
    column: Column, values: StagedInts = new StagedInts) extends StagedColumn(column, values) {

  def put(value: Int): Unit = {
    values.put(value)
    valid(1)
  }

  def put(more: Array[Int], from: Int, count: Int): Unit = {
    values.put(more, from, count, 0)
    valid(count)
  }

  override protected def putEmpty(): Int = { put(0); 0 }

  override protected def valueBytes: Int = Integer.BYTES

  override protected def valuesAlignedBytes(elements: Int): Int =
    Layout.aligned(Integer.BYTES * elements)
}

/** Values of 64 bits. */
private[pair] final class LongColumn(
    column: Column, values: StagedLongs = new StagedLongs) extends StagedColumn(column, values) {

  def put(value: Long): Unit = {
    values.put(value)
    valid(1)
  }

  override protected def putEmpty(): Int = { put(0); 0 }

  override protected def valueBytes: Int = java.lang.Long.BYTES

  override protected def valuesAlignedBytes(elements: Int): Int =
    Layout.aligned(java.lang.Long.BYTES * elements)
}

/** One bit per element, least significant first. */
private[pair] final class BooleanColumn(
    column: Column, bits: StagedBits = new StagedBits) extends StagedColumn(column, bits) {

  def put(value: Boolean): Unit = {
    bits.put(value)
    valid(1)
  }

  def put(values: Array[Int], from: Int, count: Int): Unit = {
    bits.put(values, from, count)
    valid(count)
  }

  override protected def putEmpty(): Int = { put(false); 0 }

  override protected def valueBytes: Int = 1

  override protected def valuesAlignedBytes(elements: Int): Int = Layout.aligned((elements + 7) / 8)
}

/** Bytes that the source fills in itself. */
private[pair] sealed abstract class ReservedColumn(
    column: Column, data: ColumnData) extends ColumnBuffer(column) {

  /** Space for the next value; null if there is none. */
  def reserve(bytes: Int): ByteBuffer

  protected final def appendData(slot: ByteBuffer, describedAt: Int, at: Int): Int = {
    val offset = data.appendTo(slot, at)
    val end = describe(slot, describedAt + At.dataOffset, offset, data.size)
    if (offset == at) end else at
  }
}

/** So many bytes an element. */
private[pair] final class FixedColumn(
    column: Column, width: Int, data: ColumnData) extends ReservedColumn(column, data) {

  override def reserve(bytes: Int): ByteBuffer = {
    require(bytes == width, s"column '${column.name}' has values of $width bytes, not $bytes")
    val space = data.reserve(width)
    if (space != null) valid(1)
    space
  }

  override protected def putEmpty(): Int = {
    val space = reserve(width)
    if (space == null) throw BlockFull
    var i = 0
    while (i < width) {
      space.put(0: Byte)
      i += 1
    }
    width
  }

  override protected def truncateValues(elements: Int): Unit = data.truncate(width * elements)

  override protected def valueBytes: Int = 0

  override protected def valuesAlignedBytes(elements: Int): Int = Layout.aligned(data.size)

  override protected def appendValues(slot: ByteBuffer, describedAt: Int, at: Int): Int = {
    noBuffer(slot, describedAt + At.offsetsOffset)
    appendData(slot, describedAt, at)
  }
}

/** Bytes of any length. */
private[pair] final class BytesColumn(
    column: Column, data: ColumnData) extends ReservedColumn(column, data) {
  private val offsets = new StagedInts
  offsets.put(0)

  override def reserve(bytes: Int): ByteBuffer = {
    val space = data.reserve(bytes)
    if (space != null) {
      offsets.put(data.size)
      valid(1)
    }
    space
  }

  /**
   * Values that lie one behind the other in `bytes` from `start` on; `ends` says where each ends.
   * They have to fit.
   */
  def put(bytes: Array[Byte], start: Int, ends: Array[Int], from: Int, count: Int): Unit = {
    val length = ends(from + count - 1) - start
    offsets.put(ends, from, count, data.size - start)
    data.reserve(length).put(bytes, start, length)
    valid(count)
  }

  /**
   * Values that lie in many arrays: `lengths(i)` bytes of `bytes(i)` from `starts(i)` on. They have
   * to fit.
   */
  def gather(
      bytes: Array[Array[Byte]], starts: Array[Int], lengths: Array[Int], count: Int): Unit = {
    var i = 0
    while (i < count) {
      reserve(lengths(i)).put(bytes(i), starts(i), lengths(i))
      i += 1
    }
  }

  override protected def putEmpty(): Int = if (reserve(0) == null) throw BlockFull else 0

  override protected def truncateValues(elements: Int): Unit = {
    offsets.truncate(elements + 1)
    data.truncate(offsets.array(elements))
  }

  override protected def valueBytes: Int = Integer.BYTES

  override protected def valueBuffers: Int = 2

  override protected def valuesAlignedBytes(elements: Int): Int =
    Layout.aligned(Integer.BYTES * (elements + 1)) + Layout.aligned(data.size)

  override protected def appendValues(slot: ByteBuffer, describedAt: Int, at: Int): Int =
    appendData(slot, describedAt,
      describe(slot, describedAt + At.offsetsOffset, at, offsets.copyTo(slot, at)))
}
