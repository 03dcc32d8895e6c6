package supply.source

import java.nio.ByteBuffer
import java.util.Arrays

import supply.contract.{BatchCursor, BatchWriter, ElementCursor, ElementWriter}

/**
 * Some hundred Datums in two arrays: the form in which Spark keeps, spills and sends them for the Supplier. As a tuple each would be
 * six objects, each of them a wait for memory when it is supplied. The columns stand one behind the other, as in a block, so
 * that many elements are supplied by one copy a column.
 *
 * @param numbers for each column, by its index, one number an element: what it holds; for key and data, which hold bytes, where they
 *                end in `bytes`
 * @param bytes   the keys of all elements, then the data of all
 */
final class DatumBatch private[source] (private[source] val numbers: Array[Int], val bytes: Array[Byte]) extends Serializable {
  def elements: Int = numbers.length / DatumBatch.Columns
}

object DatumBatch {

  /** A batch is closed when it has that many bytes. Small enough not to be a humongous object to the garbage collector. */
  final val Bytes = 256 << 10

  private[source] final val Columns = 7

  /** All that the cursor has; closes it. */
  def of(cursor: ElementCursor): Iterator[DatumBatch] = new Iterator[DatumBatch] {
    private val builder = new DatumBatchBuilder
    private var ahead = moved()

    private def moved(): Boolean = {
      val more = cursor.next()
      if (!more) cursor.close()
      more
    }

    override def hasNext: Boolean = ahead

    override def next(): DatumBatch = {
      while (ahead && builder.size < Bytes) {
        cursor.write(builder)
        ahead = moved()
      }
      builder.result()
    }
  }
}

/** Takes the columns of Datums from a cursor. An element's data has to come last. */
private[source] final class DatumBatchBuilder extends DatumWriter {
  private val numbers = Array.fill(DatumBatch.Columns)(new Array[Int](64))
  private val keys = new GrowingBytes(DatumBatch.Bytes / 16)
  private val data = new GrowingBytes(DatumBatch.Bytes + DatumBatch.Bytes / 2)
  private var elements = 0

  def size: Int = Math.addExact(keys.size, data.size)

  override def putInt(column: Int, value: Int): Unit = numbers(column)(elements) = value

  override def putBoolean(column: Int, value: Boolean): Unit = putInt(column, if (value) 1 else 0)

  override def reserve(column: Int, count: Int): ByteBuffer = {
    val of = if (column == Datum.Data) data else keys
    val space = of.reserve(count)
    putInt(column, of.size)
    if (column == Datum.Data) endElement()
    space
  }

  private def endElement(): Unit = {
    elements += 1
    if (elements == numbers.head.length) numbers.indices.foreach(column => numbers(column) = Arrays.copyOf(numbers(column), 2 * elements))
  }

  /** What has come since the last result. */
  def result(): DatumBatch = {
    val all = new Array[Int](DatumBatch.Columns * elements)
    numbers.indices.foreach(column => System.arraycopy(numbers(column), 0, all, column * elements, elements))
    for (i <- Datum.Data * elements until all.length) all(i) += keys.size
    val bytes = ByteBuffer.allocate(size)
    keys.moveTo(bytes)
    data.moveTo(bytes)
    elements = 0
    new DatumBatch(all, bytes.array)
  }
}

private final class GrowingBytes(atFirst: Int) {
  private var bytes = ByteBuffer.allocate(atFirst)

  def size: Int = bytes.position()

  /** The next `count` bytes, to be filled by the caller. */
  def reserve(count: Int): ByteBuffer = {
    val end = Math.addExact(size, count)
    if (end > bytes.capacity()) bytes = ByteBuffer.allocate(math.max(end, 2 * math.min(size, Int.MaxValue / 4))).put(bytes.flip())
    val space = bytes.duplicate().limit(end)
    bytes.position(end)
    space
  }

  def moveTo(to: ByteBuffer): Unit = {
    to.put(bytes.flip())
    bytes.clear()
    ()
  }
}

/** The elements of batches, one after the other. */
final class DatumBatchCursor(batches: Iterator[DatumBatch]) extends BatchCursor {
  private var numbers = Array.emptyIntArray
  private var bytes = Array.emptyByteArray
  private var elements = 0
  /** The current element's number in the batch. */
  private var at = 0

  override def next(): Boolean = {
    at += 1
    at < elements || nextBatch()
  }

  private def nextBatch(): Boolean = batches.hasNext && {
    val batch = batches.next()
    numbers = batch.numbers
    bytes = batch.bytes
    elements = batch.elements
    at = 0
    true
  }

  private def number(column: Int): Int = numbers(column * elements + at)

  /** Where the current element's value in a column of bytes begins: where that of the element before it ends. */
  private def start(column: Int): Int =
    if (at > 0) numbers(column * elements + at - 1)
    else if (column == Datum.Key) 0
    else numbers(Datum.Key * elements + elements - 1)

  override def write(to: ElementWriter): Unit = {
    writeBytes(to, Datum.Key)
    to.putInt(Datum.Label, number(Datum.Label))
    to.putInt(Datum.Channels, number(Datum.Channels))
    to.putInt(Datum.Height, number(Datum.Height))
    to.putInt(Datum.Width, number(Datum.Width))
    to.putBoolean(Datum.Encoded, number(Datum.Encoded) != 0)
    writeBytes(to, Datum.Data)
  }

  private def writeBytes(to: ElementWriter, column: Int): Unit = {
    val length = number(column) - start(column)
    to.reserve(column, length).put(bytes, start(column), length)
    ()
  }

  override def ready: Int = elements - at

  override def bytes(count: Int): Long = bytes(Datum.Key, count) + bytes(Datum.Data, count)

  private def bytes(column: Int, count: Int): Long = (numbers(column * elements + at + count - 1) - start(column)).toLong

  override def write(to: BatchWriter, count: Int): Unit = {
    def from(column: Int) = column * elements + at
    to.putBytes(Datum.Key, bytes, start(Datum.Key), numbers, from(Datum.Key), count)
    to.putInts(Datum.Label, numbers, from(Datum.Label), count)
    to.putInts(Datum.Channels, numbers, from(Datum.Channels), count)
    to.putInts(Datum.Height, numbers, from(Datum.Height), count)
    to.putInts(Datum.Width, numbers, from(Datum.Width), count)
    to.putBooleans(Datum.Encoded, numbers, from(Datum.Encoded), count)
    to.putBytes(Datum.Data, bytes, start(Datum.Data), numbers, from(Datum.Data), count)
    at += count - 1
  }

  override def describe: String = {
    val key = bytes.slice(start(Datum.Key), number(Datum.Key))
    s"the element '${Datum.printable(key)}' (${number(Datum.Data) - start(Datum.Data)} bytes of data)"
  }

  override def close(): Unit = ()
}
