package supply.pair

import java.nio.{ByteBuffer, ByteOrder}

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

  /** Bytes of its staged buffers when it has `elements` elements, alignment included. */
  def alignedBytes(elements: Int): Int

  /** Copies its staged buffers into the slot, from `at` on; writes its [[Layout.BlockColumn]]; returns where they end. */
  def append(slot: ByteBuffer, describedAt: Int, at: Int, elements: Int): Int

  /** Copies the first `bytes` of `staged` to `at`, notes offset and size, returns the aligned end. */
  protected def appendBuffer(slot: ByteBuffer, offsetField: Int, staged: ByteBuffer, at: Int, bytes: Int): Int = {
    slot.put(at, staged, 0, bytes)
    describe(slot, offsetField, at, bytes)
    at + Layout.aligned(bytes)
  }

  /** A buffer's offset stands in one field and its size in the next. */
  protected def describe(slot: ByteBuffer, offsetField: Int, at: Int, bytes: Int): Unit = {
    slot.putInt(offsetField, at)
    slot.putInt(offsetField + 4, bytes)
    ()
  }

  protected def noBuffer(slot: ByteBuffer, offsetField: Int): Unit = describe(slot, offsetField, 0, 0)
}

/** int32. */
private[pair] final class IntColumn(name: String) extends ColumnBuffer(name) {
  private val values = new Staging

  def put(value: Int): Unit = values.putInt(value)

  def clear(): Unit = values.truncate(0)

  def truncate(elements: Int): Unit = values.truncate(4 * elements)

  def alignedBytes(elements: Int): Int = Layout.aligned(4 * elements)

  def append(slot: ByteBuffer, describedAt: Int, at: Int, elements: Int): Int = {
    noBuffer(slot, describedAt + At.validityOffset)
    noBuffer(slot, describedAt + At.offsetsOffset)
    appendBuffer(slot, describedAt + At.dataOffset, values.bytes, at, 4 * elements)
  }
}

/** One bit per element, least significant first. */
private[pair] final class BooleanColumn(name: String) extends ColumnBuffer(name) {
  private val bits = new Staging
  private var count = 0

  def put(value: Boolean): Unit = {
    val bit = count & 7
    if (bit == 0) bits.putByte(0)
    if (value) bits.bytes.put(count >> 3, (bits.bytes.get(count >> 3) | 1 << bit).toByte)
    count += 1
  }

  def clear(): Unit = truncate(0)

  def truncate(elements: Int): Unit = {
    bits.truncate((elements + 7) / 8)
    val rest = elements & 7
    if (rest != 0) bits.bytes.put(elements >> 3, (bits.bytes.get(elements >> 3) & (1 << rest) - 1).toByte)
    count = elements
  }

  def alignedBytes(elements: Int): Int = Layout.aligned((elements + 7) / 8)

  def append(slot: ByteBuffer, describedAt: Int, at: Int, elements: Int): Int = {
    noBuffer(slot, describedAt + At.validityOffset)
    noBuffer(slot, describedAt + At.offsetsOffset)
    appendBuffer(slot, describedAt + At.dataOffset, bits.bytes, at, (elements + 7) / 8)
  }
}

/** Bytes of any length: the offsets are staged; where the data goes is the subclass's affair. */
private[pair] sealed abstract class BytesColumn(name: String) extends ColumnBuffer(name) {
  private val offsets = new Staging
  offsets.putInt(0)

  /** End of the data so far. */
  protected var dataBytes = 0

  protected def space(bytes: Int): ByteBuffer

  /** Space for the next value; null if there is none. */
  final def reserve(bytes: Int): ByteBuffer = {
    val buffer = space(bytes)
    if (buffer != null) {
      dataBytes += bytes
      offsets.putInt(dataBytes)
    }
    buffer
  }

  def clear(): Unit = truncate(0)

  def truncate(elements: Int): Unit = {
    offsets.truncate(4 * (elements + 1))
    dataBytes = offsets.bytes.getInt(4 * elements)
  }

  def alignedBytes(elements: Int): Int = Layout.aligned(4 * (elements + 1)) + Layout.aligned(dataBytes)

  protected def appendOffsets(slot: ByteBuffer, describedAt: Int, at: Int, elements: Int): Int = {
    noBuffer(slot, describedAt + At.validityOffset)
    appendBuffer(slot, describedAt + At.offsetsOffset, offsets.bytes, at, 4 * (elements + 1))
  }
}

/** Bytes that are staged. */
private[pair] final class StagedColumn(name: String) extends BytesColumn(name) {
  private val data = new Staging

  protected def space(bytes: Int): ByteBuffer = {
    data.truncate(dataBytes)
    data.reserve(bytes)
  }

  def append(slot: ByteBuffer, describedAt: Int, at: Int, elements: Int): Int = {
    val next = appendOffsets(slot, describedAt, at, elements)
    appendBuffer(slot, describedAt + At.dataOffset, data.bytes, next, dataBytes)
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
    appendOffsets(slot, describedAt, at, elements)
  }

  /** Where the staged buffers of the others may begin. */
  def end: Int = start + Layout.aligned(dataBytes)
}

/** Memory that grows and is kept from block to block. */
private[pair] final class Staging {
  private var buffer = allocate(4096)
  private var end = 0

  def bytes: ByteBuffer = buffer

  def putInt(value: Int): Unit = {
    grow(4)
    buffer.putInt(end, value)
    end += 4
  }

  def putByte(value: Byte): Unit = {
    grow(1)
    buffer.put(end, value)
    end += 1
  }

  /** The next `n` bytes, to be filled by the caller. */
  def reserve(n: Int): ByteBuffer = {
    grow(n)
    buffer.limit(end + n).position(end)
    end += n
    buffer
  }

  def truncate(n: Int): Unit = {
    end = n
    buffer.clear()
    ()
  }

  private def grow(n: Int): Unit = {
    buffer.limit(buffer.capacity())
    if (n > buffer.capacity() - end) {
      val larger = allocate(math.max(2L * buffer.capacity(), end.toLong + n).min(Int.MaxValue.toLong).toInt)
      larger.put(0, buffer, 0, end)
      buffer = larger
    }
  }

  private def allocate(n: Int): ByteBuffer = ByteBuffer.allocateDirect(n).order(ByteOrder.LITTLE_ENDIAN)
}
