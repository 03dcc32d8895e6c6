package supply.data

import scala.collection.mutable.ArrayBuffer

/**
 * Keeps copies of elements, for a source that has only its current element. Reuses their memory.
 */
private[data] final class CopyingCursor(cursor: ElementCursor) extends KeepingCursor {
  private val kept = new ArrayBuffer[KeptElement]
  private var current: KeptElement = _

  override def next(): Boolean = cursor.next()

  override def keep(place: Int): Unit = {
    if (place == kept.size) kept += new KeptElement
    kept(place).clear()
    cursor.write(kept(place))
  }

  override def recall(place: Int): Unit = current = kept(place)

  override def write(to: ElementWriter): Unit = current.writeTo(to)

  override def describe: String =
    s"an element of ${current.bytes} bytes, drawn from the shuffle buffer,"

  override def close(): Unit = cursor.close()
}
