package supply.protocol

import java.nio.ByteBuffer

import supply.protocol.Layout.{Notification => At}

/** A message to the rank through the notification pipe: which block, where, how big. */
private[supply] final case class Notification(
    generation: Long,
    kind: Int,
    elementCount: Int,
    sequence: Long,
    epoch: Int,
    partition: Int,
    firstElement: Long,
    offset: Long,
    size: Long,
    file: Int = 0) {
  /** Writes it at `at` of a little-endian buffer; the buffer's position does not change. */
  def write(to: ByteBuffer, at: Int): Unit = {
    to.putLong(at + At.generation, generation)
    to.putInt(at + At.kind, kind)
    to.putInt(at + At.elementCount, elementCount)
    to.putLong(at + At.sequence, sequence)
    to.putInt(at + At.epoch, epoch)
    to.putInt(at + At.partition, partition)
    to.putLong(at + At.firstElement, firstElement)
    to.putLong(at + At.offset, offset)
    to.putLong(at + At.size, size)
    to.putInt(at + At.file, file)
    to.putInt(at + At.reserved, 0)
    ()
  }
}

private[supply] object Notification {
  def read(from: ByteBuffer, at: Int): Notification = Notification(
    generation = from.getLong(at + At.generation),
    kind = from.getInt(at + At.kind),
    elementCount = from.getInt(at + At.elementCount),
    sequence = from.getLong(at + At.sequence),
    epoch = from.getInt(at + At.epoch),
    partition = from.getInt(at + At.partition),
    firstElement = from.getLong(at + At.firstElement),
    offset = from.getLong(at + At.offset),
    size = from.getLong(at + At.size),
    file = from.getInt(at + At.file))

  /** FAILURE has no block: a rank reads only generation and kind. */
  def failure(generation: Long): Notification =
    Notification(generation, Layout.Constant.NOTIFICATION_FAILURE, 0, 0, 0, 0, 0, 0, 0)
}
