package supply.bench

import java.nio.ByteBuffer
import java.util.Arrays

import org.apache.spark.rdd.RDD
import org.apache.spark.{Partition, TaskContext}

import supply.lmdb.Datum
import supply.protocol.Schema
import supply.source.{BatchCursor, ElementCursor, ElementWriter, Source}

/**
 * Some hundred Datums in two arrays, which Spark caches: a source that costs nothing but the copy. The
 * columns are contiguous, as in a block, so one copy per column supplies many elements. `numbers` has,
 * column by column, each element's value, or for key and data the end of its value in `bytes`,
 * which holds all keys, then all data.
 */
final class DatumBatch(val numbers: Array[Int],
    val bytes: Array[Byte]) extends Serializable {
  val elements: Int = numbers.length / DatumBatch.Columns

  /** Bytes of all elements' data, without the keys. */
  def dataBytes: Int = if (elements == 0) 0 else bytes.length - start(Datum.Data, 0)

  def number(column: Int, at: Int): Int = numbers(column * elements + at)

  /** The start in `bytes` of the key or data of element `at`. */
  def start(column: Int, at: Int): Int =
    if (at > 0) number(column, at - 1)
    else if (column == Datum.Key) 0
    else number(Datum.Key, elements - 1)

  def length(column: Int, at: Int): Int = number(column, at) - start(column, at)
}

object DatumBatch {
  /** A batch is closed at this size: below that of a humongous object of the garbage collector. */
  final val Bytes = 256 << 10

  final val Columns = 7

  val Empty = new DatumBatch(Array.emptyIntArray, Array.emptyByteArray)

  /** All elements of the cursor, which is closed at the end. */
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

/** Elements that Spark has cached as batches. */
final class DatumBatchSource(override val rdd: RDD[DatumBatch]) extends Source {
  override def schema: Schema = Datum.schema
  override def mainColumn: Option[Int] = Some(Datum.Data)
  override def open(partition: Partition, context: TaskContext): ElementCursor =
    new DatumBatchCursor(rdd.iterator(partition, context))
  override def openShuffled(
      partition: Partition, context: TaskContext, buffer: Int, seed: Long): ElementCursor =
    throw new UnsupportedOperationException
}

/** Collects the columns of Datums from a cursor. An element's data must come last. */
private final class DatumBatchBuilder extends ElementWriter {
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
    if (elements == numbers.head.length) numbers.indices.foreach(column =>
      numbers(column) = Arrays.copyOf(numbers(column), 2 * elements))
  }

  /** The elements since the last result. */
  def result(): DatumBatch = {
    val all = new Array[Int](DatumBatch.Columns * elements)
    numbers.indices.foreach(column =>
      System.arraycopy(numbers(column), 0, all, column * elements, elements))
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

  /** The next `count` bytes, which the caller fills. */
  def reserve(count: Int): ByteBuffer = {
    val end = Math.addExact(size, count)
    if (end > bytes.capacity()) bytes =
      ByteBuffer.allocate(math.max(end, 2 * math.min(size, Int.MaxValue / 4))).put(bytes.flip())
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

/** A cursor over the elements of batches. */
final class DatumBatchCursor(batches: Iterator[DatumBatch]) extends BatchCursor {
  private var batch = DatumBatch.Empty
  private var at = 0
  private var lengths = new Array[Int](1024)
  private var bits = new Array[Byte](1024)

  override def next(): Boolean = {
    at += 1
    at < batch.elements || batches.hasNext && {
      batch = batches.next()
      at = 0
      true
    }
  }

  override def write(to: ElementWriter): Unit = {
    writeBytes(to, Datum.Key)
    to.putInt(Datum.Label, batch.number(Datum.Label, at))
    to.putInt(Datum.Channels, batch.number(Datum.Channels, at))
    to.putInt(Datum.Height, batch.number(Datum.Height, at))
    to.putInt(Datum.Width, batch.number(Datum.Width, at))
    to.putBoolean(Datum.Encoded, batch.number(Datum.Encoded, at) != 0)
    writeBytes(to, Datum.Data)
  }

  private def writeBytes(to: ElementWriter, column: Int): Unit = {
    val length = batch.length(column, at)
    to.reserve(column, length).put(batch.bytes, batch.start(column, at), length)
    ()
  }

  override def ready: Int = batch.elements - at

  override def bytes(count: Int): Long = bytes(Datum.Key, count) + bytes(Datum.Data, count)

  private def bytes(column: Int, count: Int): Long =
    (batch.number(column, at + count - 1) - batch.start(column, at)).toLong

  override def write(to: ElementWriter, count: Int): Unit = {
    def from(column: Int) = column * batch.elements + at
    writeBytes(to, Datum.Key, count)
    for (column <- Datum.Label until Datum.Encoded)
      to.reserveValues(column, count).asIntBuffer().put(batch.numbers, from(column), count)
    var i = 0
    while (i < count) {
      bits(i) = batch.numbers(from(Datum.Encoded) + i).toByte
      i += 1
    }
    to.putBits(Datum.Encoded, bits, 0, count)
    writeBytes(to, Datum.Data, count)
    at += count - 1
  }

  private def writeBytes(to: ElementWriter, column: Int, count: Int): Unit = {
    if (count > lengths.length) {
      lengths = new Array(math.max(count, 2 * lengths.length))
      bits = new Array(lengths.length)
    }
    var start = batch.start(column, at)
    var i = 0
    while (i < count) {
      val end = batch.number(column, at + i)
      lengths(i) = end - start
      start = end
      i += 1
    }
    to.reserveBytes(column, lengths, 0, count).put(batch.bytes, batch.start(column, at),
      bytes(column, count).toInt)
    ()
  }

  override def describe: String = {
    val key = batch.bytes.slice(batch.start(Datum.Key, at), batch.number(Datum.Key, at))
    s"the element '${Datum.printable(key)}' (${batch.length(Datum.Data, at)} bytes of data)"
  }

  override def close(): Unit = ()
}
