package supply.block

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.ISO_8859_1

import supply.lmdb.Datum
import supply.protocol.Layout.Constant
import supply.source.{ElementCursor, ElementWriter, ForeignFile, ForeignValues}

/** The Datums of task-in-place.mapped (proto/golden/README.md): their data is a part of a file. */
private[block] final class InPlaceCursor(contents: Array[Byte], file: ForeignFile)
    extends ElementCursor {
  private case class Element(
      key: String, label: Int, height: Int, width: Int, encoded: Boolean, from: Int)
  private val elements = Iterator(Element("inline", 1, 2, 6, encoded = false, 0),
    Element("short", 2, 1, 13, encoded = false, 16),
    Element("long", 3, 5, 10, encoded = false, 40),
    Element("none", 4, 0, 0, encoded = true, 0))
  private var element: Element = _
  private val values = new ForeignValues()

  override def next(): Boolean = {
    val more = elements.hasNext
    if (more) element = elements.next()
    more
  }

  override def write(to: ElementWriter): Unit = {
    to.reserve(Datum.Key, element.key.length).put(element.key.getBytes(ISO_8859_1))
    to.putInt(Datum.Label, element.label)
    to.putInt(Datum.Channels, if (element.height == 0) 0 else 1)
    to.putInt(Datum.Height, element.height)
    to.putInt(Datum.Width, element.width)
    to.putBoolean(Datum.Encoded, element.encoded)
    val (from, bytes) = (element.from, element.height * element.width)
    val isInline = bytes <= Constant.VIEW_INLINE_MAX
    val start = ByteBuffer.wrap(contents.slice(from, from + bytes).padTo(12, 0: Byte)).order(
      ByteOrder.LITTLE_ENDIAN)
    values.set(0, bytes, from.toLong, start.getInt(), if (isInline) start.getLong() else 0)
    to.refer(Datum.Data, file, values, Array(0), 0, 1)
  }

  override def describe: String = s"the element '${element.key}'"

  override def close(): Unit = ()
}
