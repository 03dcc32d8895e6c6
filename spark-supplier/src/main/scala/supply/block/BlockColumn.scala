package supply.block

import java.nio.ByteBuffer

import scala.collection.mutable.ArrayBuffer

import supply.core.Buffers
import supply.protocol.{Column, Format, Layout}
import supply.protocol.Layout.{BlockColumn => At, View}
import supply.source.{ElementBytes, ForeignFile, ForeignValues}

/**
 * The values of one entry of the schema in the block under construction, in Arrow's layout. A caller
 * uses only the methods that suit the column's format; `newBytes` takes all but bits.
 */
private[block] final class BlockColumn(
    column: Column, children: Array[BlockColumn], newBytes: => BytesBuffer) {
  private val format = Format.of(column)
  private val bits = if (format == Format.Bits) new StagedBits else null
  private val bytes = if (bits == null && children.isEmpty) newBytes else null

  /** null: its children have the values. */
  private val values: ColumnBuffer = if (bits != null) bits else bytes

  /** Where each value ends; null: all have the same width. */
  private val offsets =
    if (format == Format.Variable || format == Format.Lists) new StagedInts else null
  if (offsets != null) offsets.put(0)

  /** Where the values are to which views refer; null: the values are in the block. */
  private val windows = if (format == Format.Views) new StagedWindows else null

  /** The width of a value in `bytes`; 1 otherwise, because `values` then counts elements. */
  private val width = format match {
    case Format.Fixed(width) => width
    case Format.Views => View.SIZE
    case _ => 1
  }

  /** How many elements each child has for one of this column, if all have as many. */
  private val repeated = format match {
    case Format.FixedLists(count) => count
    case _ => 1
  }

  /** Which elements are not null; null: the column is not nullable. */
  private val validity = if (column.nullable) new StagedValidity else null

  /** Upper bound of the bytes that an element adds to the block, as [[ElementBytes]] says. */
  val elementBytes: Long = ElementBytes.of(column)

  /** Whether values differ in size. */
  def isVariable: Boolean = format == Format.Variable

  /** Bytes that aligning the buffers takes at most. */
  val paddingBytes: Int =
    Seq(validity, offsets, windows, values).count(_ != null) * Layout.Constant.BUFFER_ALIGNMENT

  /** Bytes of all buffers, alignment included. */
  def alignedBytes: Int =
    aligned(validity) + aligned(offsets) + aligned(windows) + aligned(values)

  /** With those of its children. */
  def wholeBytes: Long = alignedBytes + children.map(_.wholeBytes).sum

  private def aligned(buffer: ColumnBuffer): Int =
    if (buffer == null) 0 else Layout.aligned(buffer.size)

  def putInt(value: Int): Unit = {
    bytes.putInt(value)
    valid(1)
  }

  def putBoolean(value: Boolean): Unit = {
    bits.put(value)
    valid(1)
  }

  /** As ElementWriter.putBits. */
  def putBits(more: Array[Byte], from: Int, count: Int): Unit = {
    bits.put(more, from, count)
    valid(count)
  }

  /** As ElementWriter.putLists. */
  def putLists(lengths: Array[Int], from: Int, count: Int): Unit = {
    putEnds(offsets.last, lengths, from, count)
    valid(count)
  }

  /** Returns the last end. */
  private def putEnds(start: Int, lengths: Array[Int], from: Int, count: Int): Int = {
    var end = start
    var i = from
    while (i < from + count) {
      end = Math.addExact(end, lengths(i))
      offsets.put(end)
      i += 1
    }
    end
  }

  /** As ElementWriter.putParents. */
  def putParents(count: Int): Unit = valid(count)

  /** Space for the next value. Throws [[BlockFull]] if there is none. */
  def reserve(count: Int): ByteBuffer = {
    if (offsets == null && count != width)
      throw new IllegalArgumentException(
        s"column '${column.name}' has values of $width bytes, not $count")
    val space = bytes.reserve(count)
    if (offsets != null) offsets.put(bytes.size)
    valid(1)
    space
  }

  /**
   * Refers to the value at `place`, whose file has that number. Returns how many bytes of windows
   * this has added.
   */
  def refer(number: Int, file: ForeignFile, values: ForeignValues, place: Int): Int = {
    val before = windows.size
    val element = bytes.size / View.SIZE
    val length = values.lengths(place)
    val view = bytes.reserve(View.SIZE).putInt(length).putInt(values.starts(place))
    if (length <= Layout.Constant.VIEW_INLINE_MAX) view.putLong(values.rests(place))
    else {
      val offset = values.offsets(place)
      view.putInt(windows.find(number, file, offset, element))
        .putInt((offset % StagedWindows.Stride).toInt)
    }
    valid(1)
    windows.size - before
  }

  /** As ElementWriter.reserveValues. */
  def reserveValues(count: Int): ByteBuffer = {
    val space = bytes.reserve(count * width)
    valid(count)
    space
  }

  /** As ElementWriter.reserveBytes. */
  def reserveBytes(lengths: Array[Int], from: Int, count: Int): ByteBuffer = {
    val start = bytes.size
    val end = putEnds(start, lengths, from, count)
    valid(count)
    bytes.reserve(end - start)
  }

  /** As ElementWriter.putBlank. */
  def putBlank(): Unit = {
    if (validity != null) validity.putNull()
    if (bits != null) bits.put(false)
    else if (format == Format.Lists) offsets.put(offsets.last)
    else if (offsets != null) offsets.put(bytes.size)
    else if (bytes == null) for (_ <- 0 until repeated; child <- children) child.putBlank()
    else {
      val space = bytes.reserve(width)
      Buffers.clear(space, space.position(), width)
    }
  }

  /** As ElementWriter.markNulls. */
  def markNulls(nulls: Array[Byte], from: Int, count: Int): Unit = {
    require(validity != null, s"column '${column.name}' is not nullable")
    val before = validity.nullCount
    validity.markNulls(nulls, from, count)
    if (validity.nullCount > before) clear(nulls, from, count)
  }

  /** As ElementWriter.clear: a null of variable width has no bytes already, and structs only their fields. */
  def clear(nulls: Array[Byte], from: Int, count: Int): Unit =
    if (bits != null) bits.clear(nulls, from, count)
    else if (offsets == null && bytes != null) bytes.clear(nulls, from, count, width)

  private def valid(count: Int): Unit = if (validity != null) validity.putValid(count)

  /** Keeps the first `elements` elements. */
  def truncate(elements: Int): Unit = {
    if (validity != null) validity.truncate(elements)
    if (windows != null) windows.truncate(elements)
    if (offsets != null) offsets.truncate(elements + 1)
    if (values == null) {
      val kept = if (offsets != null) offsets.array(elements) else repeated * elements
      children.foreach(_.truncate(kept))
    } else values.truncate(if (offsets != null) offsets.array(elements) else width * elements)
  }

  /** Copies the buffers into the slot from `at` on, and describes them; returns where they end. */
  def append(slot: ByteBuffer, describedAt: Int, at: Int): Int = {
    val nulls = if (validity == null) 0 else validity.nullCount
    slot.putInt(describedAt + At.nullCount, nulls)
    slot.putInt(describedAt + At.reserved, 0)
    val afterValidity =
      append(slot, describedAt + At.validityOffset, at, if (nulls == 0) null else validity)
    val afterOffsets = append(slot, describedAt + At.offsetsOffset, afterValidity,
      if (windows == null) offsets else windows)
    append(slot, describedAt + At.dataOffset, afterOffsets, values)
  }

  /** A buffer's offset is in `offsetField`, and its size in the next field. */
  private def append(slot: ByteBuffer, offsetField: Int, at: Int, buffer: ColumnBuffer): Int = {
    val offset = if (buffer == null) 0 else buffer.appendTo(slot, at)
    slot.putInt(offsetField, offset)
    slot.putInt(offsetField + Integer.BYTES, if (buffer == null) 0 else buffer.size)
    if (offset == at) at + aligned(buffer) else at
  }
}

private[block] object BlockColumn {
  /** Of all entries of the columns, in their order; `newBytes` of the entry of that number. */
  def of(columns: IndexedSeq[Column], newBytes: Int => BytesBuffer): BlockColumns = {
    val all = new ArrayBuffer[BlockColumn]
    def add(column: Column): BlockColumn = {
      val entry = all.size
      all += null
      val children = column.children.map(add).toArray
      all(entry) = new BlockColumn(column, children, newBytes(entry))
      all(entry)
    }
    val roots = columns.map(add).toArray
    new BlockColumns(all.toArray, roots)
  }
}

/** The columns of a block: all entries, and those that are within no other. */
private[block] final class BlockColumns(
    val entries: Array[BlockColumn], val roots: Array[BlockColumn])
