package supply.source

import java.nio.ByteBuffer
import java.util.Arrays

import supply.contract.{ElementCursor, ElementWriter}

/**
 * Some hundred Datums in two arrays: the form in which Spark keeps, spills and sends them for the Supplier. As a tuple each would be
 * six objects, each of them a wait for memory when it is supplied.
 *
 * @param numbers [[DatumBatch.Stride]] for each element: what its columns hold, by their index; for key and data, which hold bytes,
 *                where they end in `bytes`
 * @param bytes   key and data of the first element, then those of the next
 */
final class DatumBatch private[source] (private[source] val numbers: Array[Int], val bytes: Array[Byte]) extends Serializable {
  def elements: Int = numbers.length / DatumBatch.Stride
}

object DatumBatch {

  /** A batch is closed when it has that many bytes. Small enough not to be a humongous object to the garbage collector. */
  final val Bytes = 256 << 10

  private[source] final val Stride = 7

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

/** Takes the columns of Datums from a cursor. An element's key has to come before its data. */
private[source] final class DatumBatchBuilder extends ElementWriter {
  private var numbers = new Array[Int](64 * DatumBatch.Stride)
  private var bytes = ByteBuffer.allocate(DatumBatch.Bytes + DatumBatch.Bytes / 2)
  private var elements = 0

  def size: Int = bytes.position()

  override def putInt(column: Int, value: Int): Unit = numbers(elements * DatumBatch.Stride + column) = value

  override def putBoolean(column: Int, value: Boolean): Unit = putInt(column, if (value) 1 else 0)

  override def reserve(column: Int, count: Int): ByteBuffer = {
    val end = Math.addExact(bytes.position(), count)
    if (end > bytes.capacity()) bytes = ByteBuffer.allocate(math.max(end, DatumBatch.Bytes)).put(bytes.flip())
    val space = bytes.duplicate().limit(end)
    bytes.position(end)
    putInt(column, end)
    if (column == Datum.Data) endElement()
    space
  }

  private def endElement(): Unit = {
    elements += 1
    if (elements * DatumBatch.Stride == numbers.length) numbers = Arrays.copyOf(numbers, 2 * numbers.length)
  }

  /** What has come since the last result. */
  def result(): DatumBatch = {
    val batch = new DatumBatch(Arrays.copyOf(numbers, elements * DatumBatch.Stride), Arrays.copyOf(bytes.array, bytes.position()))
    bytes.clear()
    elements = 0
    batch
  }
}

/** The elements of batches, one after the other. */
final class DatumBatchCursor(batches: Iterator[DatumBatch]) extends ElementCursor {
  private var numbers = Array.emptyIntArray
  private var bytes = Array.emptyByteArray
  /** Where the current element's numbers begin, and its key. */
  private var at = 0
  private var start = 0

  override def next(): Boolean = {
    if (numbers.length > 0) start = numbers(at + Datum.Data)
    at += DatumBatch.Stride
    at < numbers.length || nextBatch()
  }

  private def nextBatch(): Boolean = batches.hasNext && {
    val batch = batches.next()
    numbers = batch.numbers
    bytes = batch.bytes
    at = 0
    start = 0
    true
  }

  override def write(to: ElementWriter): Unit = {
    val keyEnd = numbers(at + Datum.Key)
    val dataEnd = numbers(at + Datum.Data)
    to.reserve(Datum.Key, keyEnd - start).put(bytes, start, keyEnd - start)
    to.putInt(Datum.Label, numbers(at + Datum.Label))
    to.putInt(Datum.Channels, numbers(at + Datum.Channels))
    to.putInt(Datum.Height, numbers(at + Datum.Height))
    to.putInt(Datum.Width, numbers(at + Datum.Width))
    to.putBoolean(Datum.Encoded, numbers(at + Datum.Encoded) != 0)
    to.reserve(Datum.Data, dataEnd - keyEnd).put(bytes, keyEnd, dataEnd - keyEnd)
    ()
  }

  override def describe: String = {
    val keyEnd = numbers(at + Datum.Key)
    s"the element '${Datum.printable(bytes.slice(start, keyEnd))}' (${numbers(at + Datum.Data) - keyEnd} bytes of data)"
  }

  override def close(): Unit = ()
}
