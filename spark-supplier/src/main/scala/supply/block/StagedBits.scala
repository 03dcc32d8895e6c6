package supply.block

import java.nio.{ByteBuffer, ByteOrder}
import java.util.Arrays

/** Bits, least significant first. */
private[block] final class StagedBits extends ColumnBuffer {
  private var bytes = new Array[Byte](1024)
  private var count = 0

  /** The number of bits. */
  def length: Int = count

  override def size: Int = (count + 7) / 8

  def zeros: Int = {
    var ones = 0
    var i = 0
    while (i < size) {
      ones += Integer.bitCount(bytes(i) & 0xff)
      i += 1
    }
    count - ones
  }

  def put(value: Boolean): Unit = {
    val bit = count & 7
    if (bit == 0) begin(0)
    if (value) bytes(count >> 3) = (bytes(count >> 3) | 1 << bit).toByte
    count += 1
  }

  /** `n` bits that are 1. */
  def putOnes(n: Int): Unit = {
    val end = count + n
    while (count < end && (count & 7) != 0) put(true)
    val last = count + (end - count & ~7)
    if (last > count) {
      reserve(last / 8)
      Arrays.fill(bytes, count / 8, last / 8, -1: Byte)
      count = last
    }
    while (count < end) put(true)
  }

  /**
   * The lowest bits of `n` values from `values(from)` on; with `flip` 1, each is turned round. Per-bit
   * writes would dominate, so eight bits are packed at once.
   */
  def put(values: Array[Byte], from: Int, n: Int, flip: Int = 0): Unit = {
    val words = ByteBuffer.wrap(values).order(ByteOrder.LITTLE_ENDIAN)
    val end = from + n
    reserve((count + n + 7) / 8)
    var i = from
    while (i < end && (count & 7) != 0) {
      put(((values(i) ^ flip) & 1) != 0)
      i += 1
    }
    var at = count >> 3
    while (i + 8 <= end) {
      bytes(at) = (StagedBits.packed(words.getLong(i)) ^ -flip).toByte
      at += 1
      count += 8
      i += 8
    }
    while (i < end) {
      put(((values(i) ^ flip) & 1) != 0)
      i += 1
    }
  }

  /** Sets those of the last `n` bits to 0 whose byte in `nulls` is 1, and not 0. */
  def clear(nulls: Array[Byte], from: Int, n: Int): Unit = {
    var at = count - n
    var i = from
    while (i < from + n) {
      bytes(at >> 3) = (bytes(at >> 3) & ~(nulls(i) << (at & 7))).toByte
      at += 1
      i += 1
    }
  }

  private def begin(byte: Int): Unit = {
    reserve(size + 1)
    bytes(size) = byte.toByte
  }

  private def reserve(n: Int): Unit =
    if (n > bytes.length) bytes = Arrays.copyOf(bytes, math.max(n, 2 * bytes.length))

  override def truncate(n: Int): Unit = {
    count = n
    val rest = n & 7
    if (rest != 0) bytes(n >> 3) = (bytes(n >> 3) & (1 << rest) - 1).toByte
  }

  override def appendTo(slot: ByteBuffer, at: Int): Int = {
    slot.put(at, bytes, 0, size)
    at
  }
}

private object StagedBits {
  /** The lowest bit of each of eight bytes: no other product of two bits reaches the result. */
  def packed(bytes: Long): Int =
    ((bytes & 0x0101010101010101L) * 0x0102040810204080L >>> 56).toInt
}

/** Which elements are not null. The bits end with the last null: elements after it cost nothing. */
private[block] final class StagedValidity extends ColumnBuffer {
  private val bits = new StagedBits
  private var count = 0
  private var nulls = 0

  def nullCount: Int = nulls

  /** Also if there is no null yet: a later one must fit. */
  override def size: Int = (count + 7) / 8

  /** `n` elements that are not null. */
  def putValid(n: Int): Unit = count += n

  def putNull(): Unit = {
    bits.putOnes(count - bits.length)
    bits.put(false)
    count += 1
    nulls += 1
  }

  /** Of the last `n` elements, put as valid, those are null whose byte in `of` is 1, and not 0. */
  def markNulls(of: Array[Byte], from: Int, n: Int): Unit = {
    var more = 0
    var i = from
    while (i < from + n) {
      more += of(i)
      i += 1
    }
    if (more > 0) {
      bits.putOnes(count - n - bits.length)
      bits.put(of, from, n, flip = 1)
      nulls += more
    }
  }

  override def truncate(n: Int): Unit = {
    count = n
    if (bits.length > n) {
      bits.truncate(n)
      nulls = bits.zeros
    }
  }

  override def appendTo(slot: ByteBuffer, at: Int): Int = {
    bits.putOnes(count - bits.length)
    bits.appendTo(slot, at)
  }
}
