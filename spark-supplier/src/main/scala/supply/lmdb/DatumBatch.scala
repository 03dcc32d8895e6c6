package supply.lmdb

import java.nio.ByteBuffer
import java.util.Arrays

import org.apache.spark.rdd.RDD
import org.apache.spark.{Partition, TaskContext}

import supply.protocol.Schema
import supply.source.{BatchCursor, ElementCursor, ElementWriter, GatheringCursor, KeepingCursor, KeepingSource}

/**
 * Some hundred Datums in two arrays: the form in which Spark keeps, spills and sends them. A tuple
 * would take six objects, and each would cost a wait for memory when it is supplied. The columns
 * are contiguous, as in a block, so one copy per column supplies many elements. `numbers` has,
 * column by column, each element's value, or for key and data the end of its value in `bytes`,
 * which holds all keys, then all data.
 */
private[supply] final class DatumBatch private[lmdb] (private[lmdb] val numbers: Array[Int],
    val bytes: Array[Byte]) extends Serializable {
  val elements: Int = numbers.length / DatumBatch.Columns

  /** Bytes of all elements' data, without the keys. */
  private[supply] def dataBytes: Int = if (elements == 0) 0 else bytes.length - start(Datum.Data, 0)

  private[lmdb] def number(column: Int, at: Int): Int = numbers(column * elements + at)

  /** The start in `bytes` of the key or data of element `at`. */
  private[lmdb] def start(column: Int, at: Int): Int =
    if (at > 0) number(column, at - 1)
    else if (column == Datum.Key) 0
    else number(Datum.Key, elements - 1)

  private[lmdb] def length(column: Int, at: Int): Int = number(column, at) - start(column, at)
}

private[supply] object DatumBatch {
  /** A batch is closed at this size: below that of a humongous object of the garbage collector. */
  final val Bytes = 256 << 10

  private[lmdb] final val Columns = 7

  private[lmdb] val Empty = new DatumBatch(Array.emptyIntArray, Array.emptyByteArray)

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

/** An LMDB that Spark persists, as batches from its cache or spill. */
private[supply] final class DatumBatchSource(override val rdd: RDD[DatumBatch],
    override val partitionElements: Option[IndexedSeq[Long]],
    override val identity: Option[String] = None, override val bytes: Option[Long] = None)
    extends KeepingSource {
  override def schema: Schema = Datum.schema
  override def mainColumn: Option[Int] = Some(Datum.Data)
  override def open(partition: Partition, context: TaskContext): KeepingCursor =
    new DatumBatchCursor(rdd.iterator(partition, context))
}

/** Collects the columns of Datums from a cursor. An element's data must come last. */
private final class DatumBatchBuilder extends DatumWriter {
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
private[supply] final class DatumBatchCursor(batches: Iterator[DatumBatch]) extends BatchCursor
    with GatheringCursor {
  private val kept = new KeptDatums

  /** The element that `next()` moved to last: its batch, and its number in the batch. */
  private var newest = DatumBatch.Empty
  private var newestAt = 0

  /** The current element: the newest one, or one that was recalled. */
  private var batch = newest
  private var at = 0

  override def next(): Boolean = {
    newestAt += 1
    val more = newestAt < newest.elements || nextBatch()
    moveTo(newest, newestAt)
    more
  }

  private def nextBatch(): Boolean = batches.hasNext && {
    newest = batches.next()
    newestAt = 0
    true
  }

  private def moveTo(batch: DatumBatch, at: Int): Unit = {
    this.batch = batch
    this.at = at
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
    val numbers = batch.numbers
    def from(column: Int) = column * batch.elements + at
    to.putBytes(Datum.Key, batch.bytes, batch.start(Datum.Key, at), numbers, from(Datum.Key), count)
    to.putInts(Datum.Label, numbers, from(Datum.Label), count)
    to.putInts(Datum.Channels, numbers, from(Datum.Channels), count)
    to.putInts(Datum.Height, numbers, from(Datum.Height), count)
    to.putInts(Datum.Width, numbers, from(Datum.Width), count)
    to.putBooleans(Datum.Encoded, numbers, from(Datum.Encoded), count)
    to.putBytes(Datum.Data, batch.bytes, batch.start(Datum.Data, at), numbers, from(Datum.Data),
      count)
    newestAt += count - 1
    at = newestAt
  }

  override def keep(place: Int): Unit = kept.keep(place, newest, newestAt)

  override def keepNext(places: Array[Int], count: Int): Int = {
    var i = 0
    while (i < count && next()) {
      val more = math.min(count - i, newest.elements - newestAt)
      kept.keep(places, i, newest, newestAt, more)
      newestAt += more - 1
      i += more
    }
    moveTo(newest, newestAt)
    i
  }

  override def recall(place: Int): Unit = moveTo(kept.batch(place), kept.at(place))

  override def bytes(places: Array[Int], from: Int, count: Int): Long =
    kept.bytes(places, from, count)

  override def write(to: ElementWriter, places: Array[Int], from: Int, count: Int): Unit =
    kept.write(to, places, from, count)

  override def describe: String = {
    val key = batch.bytes.slice(batch.start(Datum.Key, at), batch.number(Datum.Key, at))
    s"the element '${Datum.printable(key)}' (${batch.length(Datum.Data, at)} bytes of data)"
  }

  override def close(): Unit = ()
}

/**
 * The Datums that a cursor keeps. Bytes stay in their batch, and are copied only into the block.
 * Numbers are copied when a Datum is kept: its batch is in the processor's cache then.
 */
private final class KeptDatums {
  import KeptDatums._

  private var batches = new Array[DatumBatch](64)

  /** Place after place, the numbers of its Datum: [[Fields]]. */
  private var fields = new Array[Int](Fields * batches.length)

  /** Reused by each write, for each of the fields; and the arrays of the values. */
  private var columns = Array.fill(Fields)(Array.emptyIntArray)
  private var arrays = Array.empty[Array[Byte]]

  def keep(place: Int, batch: DatumBatch, at: Int): Unit = {
    if (place >= batches.length) {
      batches = Arrays.copyOf(batches, 2 * place)
      fields = Arrays.copyOf(fields, Fields * batches.length)
    }
    batches(place) = batch
    val first = Fields * place
    val keyStart = batch.start(Datum.Key, at)
    val dataStart = batch.start(Datum.Data, at)
    fields(first + Datum.Key) = batch.number(Datum.Key, at) - keyStart
    fields(first + Datum.Label) = batch.number(Datum.Label, at)
    fields(first + Datum.Channels) = batch.number(Datum.Channels, at)
    fields(first + Datum.Height) = batch.number(Datum.Height, at)
    fields(first + Datum.Width) = batch.number(Datum.Width, at)
    fields(first + Datum.Encoded) = batch.number(Datum.Encoded, at)
    fields(first + Datum.Data) = batch.number(Datum.Data, at) - dataStart
    fields(first + KeyStart) = keyStart
    fields(first + DataStart) = dataStart
    fields(first + At) = at
  }

  /** Keeps `count` Datums of the batch in `places(from)` and the next places. */
  def keep(places: Array[Int], from: Int, batch: DatumBatch, at: Int, count: Int): Unit = {
    var i = 0
    while (i < count) {
      keep(places(from + i), batch, at + i)
      i += 1
    }
  }

  def batch(place: Int): DatumBatch = batches(place)

  /** The number of the element in its batch. */
  def at(place: Int): Int = fields(Fields * place + At)

  /** See [[supply.source.GatheringCursor]]. */
  def bytes(places: Array[Int], from: Int, count: Int): Long = {
    var sum = 0L
    var i = from
    while (i < from + count) {
      val first = Fields * places(i)
      sum += fields(first + Datum.Key) + fields(first + Datum.Data)
      i += 1
    }
    sum
  }

  def write(to: ElementWriter, places: Array[Int], from: Int, count: Int): Unit = {
    gather(places, from, count)
    to.gatherBytes(Datum.Key, arrays, columns(KeyStart), columns(Datum.Key), count)
    var column = Datum.Label
    while (column < Datum.Encoded) {
      to.putInts(column, columns(column), 0, count)
      column += 1
    }
    to.putBooleans(Datum.Encoded, columns(Datum.Encoded), 0, count)
    to.gatherBytes(Datum.Data, arrays, columns(DataStart), columns(Datum.Data), count)
  }

  private def gather(places: Array[Int], from: Int, count: Int): Unit = {
    if (count > arrays.length) {
      columns = Array.fill(Fields)(new Array[Int](count))
      arrays = new Array(count)
    }
    var i = 0
    while (i < count) {
      val place = places(from + i)
      arrays(i) = batches(place).bytes
      var field = 0
      while (field < Fields) {
        columns(field)(i) = fields(Fields * place + field)
        field += 1
      }
      i += 1
    }
  }
}

private object KeptDatums {
  // After the columns of a Datum: for key and data, these have the length.
  private final val KeyStart = DatumBatch.Columns
  private final val DataStart = KeyStart + 1
  private final val At = DataStart + 1
  private final val Fields = At + 1
}
