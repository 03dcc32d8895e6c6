package supply.data

import java.nio.{ByteBuffer, ByteOrder}

/**
 * The values of one element, copied into memory: for each value its kind, its column, and itself.
 */
private[data] final class KeptElement extends ElementWriter {
  import KeptElement._

  private var values = allocate(256)
  private var space = view

  private def allocate(bytes: Int) = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN)

  private def view = values.duplicate().order(ByteOrder.LITTLE_ENDIAN)

  def clear(): Unit = { values.clear(); () }

  /** The memory that the element takes here. */
  def bytes: Int = values.position()

  override def putInt(column: Int, value: Int): Unit = {
    begin(AnInt, column, Integer.BYTES).putInt(value); ()
  }

  override def putBoolean(column: Int, value: Boolean): Unit = {
    begin(if (value) True else False, column, 0); ()
  }

  override def putNull(column: Int): Unit = { begin(Null, column, 0); () }

  override def reserve(column: Int, bytes: Int): ByteBuffer = {
    begin(Bytes, column, Integer.BYTES + bytes).putInt(bytes)
    val end = values.position() + bytes
    space.limit(end).position(values.position())
    values.position(end)
    space
  }

  private def begin(kind: Byte, column: Int, bytes: Int): ByteBuffer = {
    val needed = HeaderBytes + bytes
    if (needed > values.remaining()) grow(needed)
    values.put(kind).putInt(column)
  }

  private def grow(needed: Int): Unit = {
    val capacity = math.max(Math.addExact(values.position(), needed),
      math.min(2L * values.capacity(), Int.MaxValue - 8L).toInt)
    values = allocate(capacity).put(values.flip())
    space = view
  }

  /** Writes the values in the order in which they came. */
  def writeTo(to: ElementWriter): Unit = {
    val end = values.position()
    var at = 0
    while (at < end) {
      val column = values.getInt(at + 1)
      val kind = values.get(at)
      at += HeaderBytes
      kind match {
        case AnInt =>
          to.putInt(column, values.getInt(at))
          at += Integer.BYTES
        case Bytes =>
          val count = values.getInt(at)
          to.reserve(column, count).put(values.array, at + Integer.BYTES, count)
          at += Integer.BYTES + count
        case Null => to.putNull(column)
        case _ => to.putBoolean(column, kind == True)
      }
    }
  }
}

private object KeptElement {
  final val HeaderBytes = 1 + Integer.BYTES

  final val AnInt: Byte = 1
  final val Bytes: Byte = 2
  final val Null: Byte = 3
  final val False: Byte = 4
  final val True: Byte = 5
}
