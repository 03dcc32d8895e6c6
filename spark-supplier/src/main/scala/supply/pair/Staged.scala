package supply.pair

import java.nio.{ByteBuffer, ByteOrder}
import java.util.Arrays

/**
 * Values that wait for the end of the block, in memory that grows and is kept from block to block.
 */
private[pair] sealed trait Staged {

  /** Keeps the first `n`. */
  def truncate(n: Int): Unit

  /** Copies all into the slot; returns their size in bytes. */
  def copyTo(slot: ByteBuffer, at: Int): Int
}

/** int32. */
private[pair] final class StagedInts extends Staged {
  private var values = new Array[Int](1024)
  private var count = 0

  def array: Array[Int] = values

  def put(value: Int): Unit = {
    if (count == values.length) values = Arrays.copyOf(values, 2 * count)
    values(count) = value
    count += 1
  }

  /** `n` values from `from` on, each with `shift` added. */
  def put(more: Array[Int], from: Int, n: Int, shift: Int): Unit = {
    if (n > values.length - count)
      values = Arrays.copyOf(values, math.max(2 * values.length, count + n))
    var i = 0
    while (i < n) {
      values(count + i) = more(from + i) + shift
      i += 1
    }
    count += n
  }

  override def truncate(n: Int): Unit = count = n

  override def copyTo(slot: ByteBuffer, at: Int): Int = {
    val bytes = Integer.BYTES * count
    slot.slice(at, bytes).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().put(values, 0, count)
    bytes
  }
}

/** int64. */
private[pair] final class StagedLongs extends Staged {
  private var values = new Array[Long](1024)
  private var count = 0

  def put(value: Long): Unit = {
    if (count == values.length) values = Arrays.copyOf(values, 2 * count)
    values(count) = value
    count += 1
  }

  override def truncate(n: Int): Unit = count = n

  override def copyTo(slot: ByteBuffer, at: Int): Int = {
    val bytes = java.lang.Long.BYTES * count
    slot.slice(at, bytes).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().put(values, 0, count)
    bytes
  }
}

/** Bytes. */
private[pair] final class StagedBytes extends Staged {
  private var values = new Array[Byte](4096)
  private var buffer = ByteBuffer.wrap(values)
  private var count = 0

  def array: Array[Byte] = values

  def put(value: Byte): Unit = {
    grow(1)
    values(count) = value
    count += 1
  }

  /** The next `n` bytes, to be filled by the caller. */
  def reserve(n: Int): ByteBuffer = {
    grow(n)
    buffer.limit(count + n).position(count)
    count += n
    buffer
  }

  override def truncate(n: Int): Unit = count = n

  override def copyTo(slot: ByteBuffer, at: Int): Int = {
    slot.put(at, values, 0, count)
    count
  }

  private def grow(n: Int): Unit = if (n > values.length - count) {
    values = Arrays.copyOf(values,
      math.max(2L * values.length, count.toLong + n).min(Int.MaxValue - 8L).toInt)
    buffer = ByteBuffer.wrap(values)
  }
}

/** Bits, least significant first. */
private[pair] final class StagedBits extends Staged {
  private val bytes = new StagedBytes
  private var count = 0

  def size: Int = count

  def zeros: Int = {
    var ones = 0
    var i = 0
    while (i < (count + 7) / 8) {
      ones += Integer.bitCount(bytes.array(i) & 0xff)
      i += 1
    }
    count - ones
  }

  def put(value: Boolean): Unit = {
    val bit = count & 7
    if (bit == 0) bytes.put(0)
    if (value) bytes.array(count >> 3) = (bytes.array(count >> 3) | 1 << bit).toByte
    count += 1
  }

  /**
   * A byte at a time, where one begins: a call for each bit would be what the most time of many
   * elements goes into.
   */
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
        bytes.put(byte.toByte)
        count += 8
        i += 8
      } else {
        put(values(i) != 0)
        i += 1
      }
    }
  }

  override def truncate(n: Int): Unit = {
    bytes.truncate((n + 7) / 8)
    val rest = n & 7
    if (rest != 0) bytes.array(n >> 3) = (bytes.array(n >> 3) & (1 << rest) - 1).toByte
    count = n
  }

  override def copyTo(slot: ByteBuffer, at: Int): Int = bytes.copyTo(slot, at)
}
