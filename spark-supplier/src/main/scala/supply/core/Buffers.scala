package supply.core

import java.nio.{Buffer, ByteBuffer}

import sun.misc.Unsafe

/** The memory of a buffer, for copies from memory that Java has no buffer of. */
private[supply] object Buffers {
  private val unsafe: Unsafe = {
    val field = classOf[Unsafe].getDeclaredField("theUnsafe")
    field.setAccessible(true)
    field.get(null).asInstanceOf[Unsafe]
  }

  private val addressOffset =
    unsafe.objectFieldOffset(classOf[Buffer].getDeclaredField("address"))

  /** Address of the first byte of a direct buffer. */
  private def addressOf(direct: ByteBuffer): Long = unsafe.getLong(direct, addressOffset)

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
}
