package supply.pair

import java.nio.ByteBuffer

import supply.contract.Layout
import supply.contract.Layout.{BlockColumn => At}

/**
 * The values of one column of the block under construction, in Arrow's layout. They are staged in memory
 * of their own and appended when the block is closed; only the data of a [[MainColumn]] stands in the slot from the start.
 */
private[pair] sealed abstract class ColumnBuffer(val name: String) {

  /** Forgets all elements. */
  def clear(): Unit

  /** Forgets what has come after element `elements`. */
  def truncate(elements: Int): Unit

  /** What an element takes at most, in bytes, besides what is reserved for it. */
  def elementBytes: Int

  /** Bytes of its staged buffers when it has `elements` elements, alignment included. */
  def alignedBytes(elements: Int): Int

  /** Copies its staged buffers into the slot, from `at` on; writes its [[Layout.BlockColumn]]; returns where they end. */
  def append(slot: ByteBuffer, describedAt: Int, at: Int, elements: Int): Int

  /** A buffer's offset stands in one field and its size in the next. Returns its aligned end. */
  protected def describe(slot: ByteBuffer, offsetField: Int, at: Int, bytes: Int): Int = {
    slot.putInt(offsetField, at)
    slot.putInt(offsetField + Integer.BYTES, bytes)
    at + Layout.aligned(bytes)
  }

  protected def noBuffer(slot: ByteBuffer, offsetField: Int): Unit = { describe(slot, offsetField, 0, 0); () }
}

/** int32. */
private[pair] final class IntColumn(name: String) extends ColumnBuffer(name) {
  private val values = new StagedInts

  def put(value: Int): Unit = values.put(value)

  def put(more: Array[Int], from: Int, count: Int): Unit = values.put(more, from, count, 0)

  def clear(): Unit = values.truncate(0)

  def truncate(elements: Int): Unit = values.truncate(elements)

  def elementBytes: Int = Integer.BYTES

  def alignedBytes(elements: Int): Int = Layout.aligned(Integer.BYTES * elements)

  def append(slot: ByteBuffer, describedAt: Int, at: Int, elements: Int): Int = {
    noBuffer(slot, describedAt + At.validityOffset)
    noBuffer(slot, describedAt + At.offsetsOffset)
    describe(slot, describedAt + At.dataOffset, at, values.copyTo(slot, at))
  }
}

/** One bit per element, least significant first. */
private[pair] final class BooleanColumn(name: String) extends ColumnBuffer(name) {
  private val bits = new StagedBytes
  private var count = 0

  def put(value: Boolean): Unit = {
    val bit = count & 7
    if (bit == 0) bits.put(0)
    if (value) bits.array(count >> 3) = (bits.array(count >> 3) | 1 << bit).toByte
    count += 1
  }

  /** A byte at a time, where one begins: a call for each bit would be what the most time of many elements goes into. */
  def put(values: Array[Int], from: Int, n: Int): Unit = {
    var i = from
    while (i < from + n) {
      if ((count & 7) == 0 && i + 8 <= from + n) {
        var byte = 0
        var bit = 0
        while (bit < 8) {
          if (values(i + bit) != 0) byte |= 1 << bit
          bit += 1
        }
        bits.put(byte.toByte)
        count += 8
        i += 8
      } else {
        put(values(i) != 0)
        i += 1
      }
    }
  }

  def clear(): Unit = truncate(0)

  def truncate(elements: Int): Unit = {
    bits.truncate((elements + 7) / 8)
    val rest = elements & 7
    if (rest != 0) bits.array(elements >> 3) = (bits.array(elements >> 3) & (1 << rest) - 1).toByte
    count = elements
  }

  def elementBytes: Int = 1

  def alignedBytes(elements: Int): Int = Layout.aligned((elements + 7) / 8)

  def append(slot: ByteBuffer, describedAt: Int, at: Int, elements: Int): Int = {
    noBuffer(slot, describedAt + At.validityOffset)
    noBuffer(slot, describedAt + At.offsetsOffset)
    describe(slot, describedAt + At.dataOffset, at, bits.copyTo(slot, at))
  }
}

/** Bytes of any length: the offsets are staged; where the data goes is the subclass's affair. */
private[pair] sealed abstract class BytesColumn(name: String) extends ColumnBuffer(name) {
  private val offsets = new StagedInts
  offsets.put(0)

  /** End of the data so far. */
  protected var dataBytes = 0

  protected def space(bytes: Int): ByteBuffer

  /** Space for the next value; null if there is none. */
  final def reserve(bytes: Int): ByteBuffer = {
    val buffer = space(bytes)
    if (buffer != null) {
      dataBytes += bytes
      offsets.put(dataBytes)
    }
    buffer
  }

  /** Values that lie one behind the other in `bytes` from `start` on; `ends` says where each ends. They have to fit. */
  final def put(bytes: Array[Byte], start: Int, ends: Array[Int], from: Int, count: Int): Unit = {
    val length = ends(from + count - 1) - start
    space(length).put(bytes, start, length)
    offsets.put(ends, from, count, dataBytes - start)
    dataBytes += length
  }

  def clear(): Unit = truncate(0)

  def truncate(elements: Int): Unit = {
    offsets.truncate(elements + 1)
    dataBytes = offsets.array(elements)
  }

  def elementBytes: Int = Integer.BYTES

  def alignedBytes(elements: Int): Int = Layout.aligned(Integer.BYTES * (elements + 1)) + Layout.aligned(dataBytes)

  protected def appendOffsets(slot: ByteBuffer, describedAt: Int, at: Int): Int = {
    noBuffer(slot, describedAt + At.validityOffset)
    describe(slot, describedAt + At.offsetsOffset, at, offsets.copyTo(slot, at))
  }
}

/** Bytes that are staged. */
private[pair] final class StagedColumn(name: String) extends BytesColumn(name) {
  private val data = new StagedBytes

  protected def space(bytes: Int): ByteBuffer = {
    data.truncate(dataBytes)
    data.reserve(bytes)
  }

  def append(slot: ByteBuffer, describedAt: Int, at: Int, elements: Int): Int = {
    val next = appendOffsets(slot, describedAt, at)
    data.truncate(dataBytes)
    describe(slot, describedAt + At.dataOffset, next, data.copyTo(slot, next))
  }
}

/** The largest column: its data goes straight into the slot, from `start` on. */
private[pair] final class MainColumn(name: String, start: Int) extends BytesColumn(name) {
  private var slot: ByteBuffer = _

  def writeInto(newSlot: ByteBuffer): Unit = slot = newSlot

  protected def space(bytes: Int): ByteBuffer = {
    val at = start + dataBytes
    if (bytes > slot.capacity() - at) null
    else slot.limit(at + bytes).position(at)
  }

  def append(slot: ByteBuffer, describedAt: Int, at: Int, elements: Int): Int = {
    describe(slot, describedAt + At.dataOffset, start, dataBytes)
    appendOffsets(slot, describedAt, at)
  }

  /** Where the staged buffers of the others may begin. */
  def end: Int = start + Layout.aligned(dataBytes)
}
