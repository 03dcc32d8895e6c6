package supply.block

import java.nio.{ByteBuffer, ByteOrder}
import java.util.Arrays

import scala.collection.mutable.ArrayBuffer
import scala.util.control.ControlThrowable

import supply.core.Buffers
import supply.protocol.Layout
import supply.protocol.Layout.{Constant, Window => At}
import supply.source.ForeignFile

/** One buffer of a column: staged in memory that is reused, or already in the slot. */
private[block] abstract class ColumnBuffer {
  /** In bytes. */
  def size: Int

  /** Keeps the first `count` values. */
  def truncate(count: Int): Unit

  /** Copies all into the slot, unless they are there. Returns the offset where they are. */
  def appendTo(slot: ByteBuffer, at: Int): Int
}

/** int32 values: where each value of a column ends. */
private[block] final class StagedInts extends ColumnBuffer {
  private var values = new Array[Int](1024)
  private var count = 0

  def array: Array[Int] = values

  def last: Int = values(count - 1)

  override def size: Int = Integer.BYTES * count

  def put(value: Int): Unit = {
    if (count == values.length) values = Arrays.copyOf(values, 2 * count)
    values(count) = value
    count += 1
  }

  override def truncate(n: Int): Unit = count = n

  override def appendTo(slot: ByteBuffer, at: Int): Int = {
    slot.slice(at, size).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().put(values, 0, count)
    at
  }
}

/**
 * The windows of a column of views. Each begins at a multiple of `StagedWindows.Stride` and reaches
 * beyond the next one, so that each value of that size lies in one.
 */
private[block] final class StagedWindows extends ColumnBuffer {
  import StagedWindows.{Stride, Window}

  private val windows = new ArrayBuffer[Window]

  /** The index of the window in which the value of that element, at `offset`, begins. */
  def find(number: Int, file: ForeignFile, offset: Long, element: Int): Int = {
    val start = offset / Stride * Stride
    // Values mostly follow each other.
    var i = windows.size - 1
    while (i >= 0 && !(windows(i).start == start && windows(i).number == number)) i -= 1
    if (i >= 0) i
    else {
      val bytes = math.min(file.bytes - start, Constant.WINDOW_BYTES_MAX.toLong)
      windows += Window(number, start, bytes, element)
      windows.size - 1
    }
  }

  override def size: Int = At.SIZE * windows.size

  /** Keeps the windows of the first `count` elements. */
  override def truncate(count: Int): Unit =
    while (windows.nonEmpty && windows.last.firstElement >= count) windows.remove(windows.size - 1)

  override def appendTo(slot: ByteBuffer, at: Int): Int = {
    windows.indices.foreach { i =>
      val window = at + At.SIZE * i
      slot.putLong(window + At.file, windows(i).number.toLong) // and the free bytes after it
      slot.putLong(window + At.offset, windows(i).start)
      slot.putLong(window + At.windowBytes, windows(i).bytes)
    }
    at
  }
}

private[block] object StagedWindows {
  /** A value in place has at most this number of bytes. */
  final val Stride = 1L << 30

  /** `firstElement` is the first one whose value begins in it. */
  private final case class Window(number: Int, start: Long, bytes: Long, firstElement: Int)
}

/** Bytes that the source fills in itself. */
private[block] abstract class BytesBuffer extends ColumnBuffer {
  protected var count = 0

  override final def size: Int = count

  override final def truncate(n: Int): Unit = count = n

  /** The next `n` bytes, little-endian, to fill at once. Throws [[BlockFull]] if there is none. */
  def reserve(n: Int): ByteBuffer

  /** The same as `reserve(4).putInt(value)`. */
  def putInt(value: Int): Unit

  /**
   * Sets those of the last `n` values, of `width` bytes each, to 0 whose byte in `nulls` is 1, and not
   * 0.
   */
  def clear(nulls: Array[Byte], from: Int, n: Int, width: Int): Unit
}

private[block] object BytesBuffer {
  /** The same for the values at `start`. Without branches: which ones are null cannot be foreseen. */
  def clear(bytes: ByteBuffer, start: Int, nulls: Array[Byte], from: Int, n: Int,
      width: Int): Unit = {
    var at = start
    var i = from
    width match {
      case java.lang.Long.BYTES => while (i < from + n) {
          bytes.putLong(at, bytes.getLong(at) & nulls(i) - 1L)
          at += width
          i += 1
        }
      case Integer.BYTES => while (i < from + n) {
          bytes.putInt(at, bytes.getInt(at) & nulls(i) - 1)
          at += width
          i += 1
        }
      case _ => while (i < from + n) {
          if (nulls(i) != 0) Buffers.clear(bytes, at, width)
          at += width
          i += 1
        }
    }
  }
}

private[block] final class StagedBytes extends BytesBuffer {
  private var values = new Array[Byte](4096)
  private var buffer = wrapped

  /** Its limit never moves. */
  private var all = wrapped

  private def wrapped = ByteBuffer.wrap(values).order(ByteOrder.LITTLE_ENDIAN)

  override def reserve(n: Int): ByteBuffer = {
    if (n > values.length - count) grow(n)
    buffer.limit(count + n).position(count)
    count += n
    buffer
  }

  override def putInt(value: Int): Unit = {
    if (Integer.BYTES > values.length - count) grow(Integer.BYTES)
    all.putInt(count, value)
    count += Integer.BYTES
  }

  private def grow(n: Int): Unit = {
    values = Arrays.copyOf(values,
      math.max(2L * values.length, count.toLong + n).min(Buffers.MostBytes.toLong).toInt)
    buffer = wrapped
    all = wrapped
  }

  override def clear(nulls: Array[Byte], from: Int, n: Int, width: Int): Unit =
    BytesBuffer.clear(all, count - width * n, nulls, from, n, width)

  override def appendTo(slot: ByteBuffer, at: Int): Int = {
    slot.put(at, values, 0, count)
    at
  }
}

/** Values that are written into the slot itself. */
private[block] final class BytesInSlot extends BytesBuffer {
  private var slot: ByteBuffer = _
  private var start = 0

  /** The values of the next block: from `at` on. */
  def writeInto(newSlot: ByteBuffer, at: Int): Unit = {
    slot = newSlot
    start = at
    truncate(0)
  }

  /** Moves the values to `at`, if there is free space in front of them. Returns where they end. */
  def moveTo(at: Int): Int = {
    if (at < start) {
      val address = Buffers.addressOf(slot)
      Buffers.unsafe.copyMemory(address + start, address + at, count.toLong)
      start = at
    }
    at + Layout.aligned(count)
  }

  override def reserve(n: Int): ByteBuffer = {
    val at = start + count
    if (n > slot.capacity() - at) throw BlockFull
    count += n
    slot.limit(at + n).position(at)
  }

  override def putInt(value: Int): Unit = { reserve(Integer.BYTES).putInt(value); () }

  override def clear(nulls: Array[Byte], from: Int, n: Int, width: Int): Unit =
    BytesBuffer.clear(slot.limit(start + count), start + count - width * n, nulls, from, n, width)

  override def appendTo(slot: ByteBuffer, at: Int): Int = start
}

/** Ends the writing of an element that does not fit. Thrown once per block, without a stack. */
private[block] object BlockFull extends ControlThrowable
