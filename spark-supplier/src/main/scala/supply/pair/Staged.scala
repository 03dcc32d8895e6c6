package supply.pair

import java.nio.{ByteBuffer, ByteOrder}
import java.util.Arrays

/** int32 values that wait for the end of the block, in memory that grows and is kept from block to block. */
private[pair] final class StagedInts {
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
    if (n > values.length - count) values = Arrays.copyOf(values, math.max(2 * values.length, count + n))
    var i = 0
    while (i < n) {
      values(count + i) = more(from + i) + shift
      i += 1
    }
    count += n
  }

  def truncate(n: Int): Unit = count = n

  /** Copies all into the slot; returns their size in bytes. */
  def copyTo(slot: ByteBuffer, at: Int): Int = {
    val bytes = Integer.BYTES * count
    slot.slice(at, bytes).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().put(values, 0, count)
    bytes
  }
}

/** The same for bytes. */
private[pair] final class StagedBytes {
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

  def truncate(n: Int): Unit = count = n

  /** Copies all into the slot; returns their size in bytes. */
  def copyTo(slot: ByteBuffer, at: Int): Int = {
    slot.put(at, values, 0, count)
    count
  }

  private def grow(n: Int): Unit = if (n > values.length - count) {
    values = Arrays.copyOf(values, math.max(2L * values.length, count.toLong + n).min(Int.MaxValue - 8L).toInt)
    buffer = ByteBuffer.wrap(values)
  }
}
