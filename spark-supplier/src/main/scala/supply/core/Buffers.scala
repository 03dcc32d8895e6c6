package supply.core

import java.nio.{Buffer, ByteBuffer}

import sun.misc.Unsafe

/** The memory of a buffer, for copies from memory that Java has no buffer of. */
private[supply] object Buffers {
  /** The JVM's longest array of bytes. */
  final val MostBytes: Int = Int.MaxValue - 8

  private[supply] val unsafe: Unsafe = {
    val field = classOf[Unsafe].getDeclaredField("theUnsafe")
    field.setAccessible(true)
    field.get(null).asInstanceOf[Unsafe]
  }

  private val addressOffset =
    unsafe.objectFieldOffset(classOf[Buffer].getDeclaredField("address"))

  /** Address of the first byte of a direct buffer. */
  private[supply] def addressOf(direct: ByteBuffer): Long = unsafe.getLong(direct, addressOffset)

  /**
   * Copies `bytes` bytes into the buffer, as `put` does. They begin at `offset` in the array `base`,
   * as Unsafe counts; if it is null, at that address.
   */
  def put(base: AnyRef, offset: Long, bytes: Int, to: ByteBuffer): Unit = {
    val position = to.position()
    to.position(position + bytes) // checks that they fit
    if (to.hasArray) {
      val start = Unsafe.ARRAY_BYTE_BASE_OFFSET.toLong + to.arrayOffset + position
      unsafe.copyMemory(base, offset, to.array, start, bytes.toLong)
    } else unsafe.copyMemory(base, offset, null, addressOf(to) + position, bytes.toLong)
  }

  /** Sets `bytes` bytes of the buffer from `at` on to 0. */
  def clear(buffer: ByteBuffer, at: Int, bytes: Int): Unit = {
    val end = at + bytes
    var i = at
    while (i + java.lang.Long.BYTES <= end) {
      buffer.putLong(i, 0)
      i += java.lang.Long.BYTES
    }
    while (i < end) {
      buffer.put(i, 0: Byte)
      i += 1
    }
  }
}
