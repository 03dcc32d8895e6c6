package supply.data

import java.nio.{ByteBuffer, ByteOrder}

import supply.protocol.{Column, Format}

/** Passes on the values of some columns. `places`: where each column goes; -1: nowhere. */
private[data] final class SelectedWriter(columns: IndexedSeq[Column], places: Array[Int])
    extends BatchWriter {
  private var to: ElementWriter = _
  private var many: BatchWriter = _

  /** Takes the bytes that nobody wants. */
  private var unwanted = ByteBuffer.allocate(0)

  def passOnTo(writer: ElementWriter): SelectedWriter = {
    to = writer
    this
  }

  def passOnTo(writer: BatchWriter): SelectedWriter = {
    to = writer
    many = writer
    this
  }

  private def isTaken(column: Int) = places(column) >= 0

  private def discard(bytes: Int): ByteBuffer = {
    if (bytes > unwanted.capacity())
      unwanted = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN)
    unwanted.clear().limit(bytes)
  }

  override def putInt(column: Int, value: Int): Unit =
    if (isTaken(column)) to.putInt(places(column), value)

  override def putBoolean(column: Int, value: Boolean): Unit =
    if (isTaken(column)) to.putBoolean(places(column), value)

  override def putNull(column: Int): Unit = if (isTaken(column)) to.putNull(places(column))

  override def reserve(column: Int, bytes: Int): ByteBuffer =
    if (isTaken(column)) to.reserve(places(column), bytes) else discard(bytes)

  override def refer(column: Int, file: ForeignFile, values: ForeignValues, at: Array[Int],
      from: Int, count: Int): Unit =
    if (isTaken(column)) to.refer(places(column), file, values, at, from, count)

  override def reserveValues(column: Int, count: Int): ByteBuffer =
    if (isTaken(column)) many.reserveValues(places(column), count)
    else Format.of(columns(column)) match {
      case Format.Fixed(width) => discard(count * width)
      case _ => discard(0)
    }

  override def putInts(column: Int, values: Array[Int], from: Int, count: Int): Unit =
    if (isTaken(column)) many.putInts(places(column), values, from, count)

  override def putBooleans(column: Int, values: Array[Int], from: Int, count: Int): Unit =
    if (isTaken(column)) many.putBooleans(places(column), values, from, count)

  override def putBytes(column: Int, bytes: Array[Byte], start: Int, ends: Array[Int], from: Int,
      count: Int): Unit =
    if (isTaken(column)) many.putBytes(places(column), bytes, start, ends, from, count)

  override def gatherBytes(column: Int, bytes: Array[Array[Byte]], starts: Array[Int],
      lengths: Array[Int], count: Int): Unit =
    if (isTaken(column)) many.gatherBytes(places(column), bytes, starts, lengths, count)
}
