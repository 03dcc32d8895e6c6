package supply.pair

import java.nio.ByteBuffer

import supply.protocol.Layout

/** The bytes of one column's values. */
private[pair] sealed abstract class ColumnData {

  /** The end of what has been reserved. */
  var size = 0

  /** The next `bytes` bytes, to be filled by the caller at once; null if there is no space. */
  final def reserve(bytes: Int): ByteBuffer = {
    val buffer = space(bytes)
    if (buffer != null) size += bytes
    buffer
  }

  final def truncate(bytes: Int): Unit = size = bytes

  protected def space(bytes: Int): ByteBuffer

  /** Where they lie in the slot: at `at`, unless they are there already. */
  def appendTo(slot: ByteBuffer, at: Int): Int
}

private[pair] final class StagedData extends ColumnData {
  private val staged = new StagedBytes

  override protected def space(bytes: Int): ByteBuffer = {
    staged.truncate(size)
    staged.reserve(bytes)
  }

  override def appendTo(slot: ByteBuffer, at: Int): Int = {
    staged.truncate(size)
    staged.copyTo(slot, at)
    at
  }
}

/** Of the main column: straight in the slot, from `start` on. */
private[pair] final class DataInSlot(start: Int) extends ColumnData {
  private var slot: ByteBuffer = _

  def writeInto(newSlot: ByteBuffer): Unit = slot = newSlot

  override protected def space(bytes: Int): ByteBuffer = {
    val at = start + size
    if (bytes > slot.capacity() - at) null
    else slot.limit(at + bytes).position(at)
  }

  override def appendTo(slot: ByteBuffer, at: Int): Int = start

  /** Where the staged buffers of the others may begin. */
  def end: Int = start + Layout.aligned(size)
}
