package supply.lmdb

import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN
import java.util.Arrays

import org.fusesource.lmdbjni.DirectBuffer

import supply.core.SourceException
import supply.protocol.Layout
import supply.protocol.Layout.Constant.VIEW_INLINE_MAX
import supply.source.{ElementWriter, ForeignFile, ForeignValues, GatheringCursor}

/**
 * The Datums of one partition, for ranks that read the data in the LMDB itself. It reads some
 * hundred entries ahead, because writing them column by column takes a third of the time.
 */
private[supply] final class LmdbInPlaceCursor(
    file: ForeignFile, partition: LmdbPartition, columns: IndexedSeq[Int] = Datum.Columns,
    window: Long = MappedWindow.bytes)
    extends GatheringCursor {
  private val entries = new PartitionWalk(file.path, partition, window)
  private val datum = new DatumReader

  /** Of each column of a Datum, its entry in the schema; -1: it is not wanted. */
  private val wanted = Datum.Columns.map(columns.indexOf(_)).toArray

  /** The entries that the walk has passed since the last ones were read. */
  private val walked = new MappedEntries

  /** The entries that were read last, and the number of the newest that was moved to. */
  private val ahead = new DatumReferences(wanted)
  private var aheadCount = 0
  private var newest = -1
  private lazy val kept = new DatumReferences(wanted)

  /** The current element: the newest one, or one that was recalled. */
  private var current = ahead
  private var at = 0

  override def next(): Boolean = {
    newest += 1
    if (newest >= aheadCount) readAhead()
    current = ahead
    at = newest
    newest < aheadCount
  }

  private def readAhead(): Unit = {
    val walk = entries.walk
    newest = 0
    aheadCount = 0
    var count = 0
    while (count < DatumReferences.Places && !(count > 0 && walk.mapsAgain) && entries.next()) {
      walked.keep(count, walk.key, walk.value)
      walked.fetchNext(count)
      count += 1
    }
    walked.fetch(count)
    while (aheadCount < count) {
      walked.recall(aheadCount)
      read(aheadCount, walked.key, walked.value)
      aheadCount += 1
    }
  }

  private def read(place: Int, key: DirectBuffer, value: DirectBuffer): Unit = {
    entries.read(datum, key, value, value.capacity())
    if (datum.dataOffset < 0)
      throw new SourceException(
        s"the float_data of key '${entries.printable(key)}' of the LMDB ${file.path} is not packed, and ranks " +
          "cannot read it in place (--in-place): supply it without that option")
    // A short value stands in its view. An empty one may lie at the end of the mapping.
    val offset =
      if (datum.dataBytes > VIEW_INLINE_MAX)
        entries.walk.offsetOf(value.addressOffset + datum.dataOffset, file)
      else 0
    ahead.set(place, key, value, datum, offset)
  }

  override def write(to: ElementWriter): Unit = current.write(to, file, at)

  override def ready: Int = if (current eq ahead) aheadCount - at else 0

  override def bytes(count: Int): Long = ahead.bytes(LmdbInPlaceCursor.Places, at, count)

  override def referencedBytes(count: Int): Long =
    ahead.referencedBytes(LmdbInPlaceCursor.Places, at, count)

  override def write(to: ElementWriter, count: Int): Unit = {
    ahead.write(to, file, LmdbInPlaceCursor.Places, at, count)
    newest += count - 1
    at = newest
  }

  override def keep(place: Int): Unit = kept.copy(place, ahead, newest)

  override def recall(place: Int): Unit = {
    current = kept
    at = place
  }

  override def bytes(places: Array[Int], from: Int, count: Int): Long =
    kept.bytes(places, from, count)

  override def referencedBytes(places: Array[Int], from: Int, count: Int): Long =
    kept.referencedBytes(places, from, count)

  override def write(to: ElementWriter, places: Array[Int], from: Int, count: Int): Unit =
    kept.write(to, file, places, from, count)

  override def describe: String = current.describe(at)

  override def close(): Unit = entries.close()
}

private object LmdbInPlaceCursor {
  /** Entries read ahead lie in their order. */
  private val Places = Array.range(0, DatumReferences.Places)
}

/** Keys and numbers of Datums, and references to their data, in numbered places. */
private[lmdb] final class DatumReferences(wanted: Array[Int]) {
  import DatumReferences.Numbers

  private var keys = Array.fill(DatumReferences.Places)(Array.emptyByteArray)
  private var keyLengths = new Array[Int](keys.length)

  /** Label, channels, height, width and encoded, by column. */
  private val numbers = Array.fill(Numbers)(new Array[Int](keys.length))
  private val data = new ForeignValues(keys.length)

  // Reused by each write.
  private var lengths = Array.emptyIntArray
  private var bits = Array.emptyByteArray
  private val single = new Array[Int](1)

  /** Takes over what the reader has found in a value. `offset`: of data that is not short. */
  def set(place: Int, key: DirectBuffer, value: DirectBuffer, datum: DatumReader,
      offset: Long): Unit = {
    val length = key.capacity()
    if (keys(place).length < length) keys(place) = new Array(length)
    key.getBytes(0, keys(place), 0, length)
    keyLengths(place) = length
    setNumbers(place, datum)
    val bytes = datum.dataBytes
    if (bytes > VIEW_INLINE_MAX)
      data.set(place, bytes, offset, value.getInt(datum.dataOffset, LITTLE_ENDIAN), 0)
    else data.set(place, bytes, 0, short(value, datum, 0, 4).toInt, short(value, datum, 4, 8))
  }

  private def setNumbers(place: Int, datum: DatumReader): Unit = {
    numbers(Datum.Label)(place) = datum.label
    numbers(Datum.Channels)(place) = datum.channels
    numbers(Datum.Height)(place) = datum.height
    numbers(Datum.Width)(place) = datum.width
    numbers(Datum.Encoded)(place) = if (datum.encoded) 1 else 0
  }

  /** Up to `count` bytes of the data from `from` on, little-endian, followed by zeros. */
  private def short(value: DirectBuffer, datum: DatumReader, from: Int, count: Int): Long = {
    var bytes = 0L
    var i = math.min(datum.dataBytes - from, count) - 1
    while (i >= 0) {
      bytes = bytes << 8 | value.getByte(datum.dataOffset + from + i) & 0xff
      i -= 1
    }
    bytes
  }

  /** Copies one place of other references. */
  def copy(place: Int, from: DatumReferences, at: Int): Unit = {
    if (place >= keys.length) grow()
    val length = from.keyLengths(at)
    if (keys(place).length < length) keys(place) = new Array(length)
    System.arraycopy(from.keys(at), 0, keys(place), 0, length)
    keyLengths(place) = length
    var i = Datum.Label
    while (i < Numbers) {
      numbers(i)(place) = from.numbers(i)(at)
      i += 1
    }
    data.copy(place, from.data, at)
  }

  private def grow(): Unit = {
    val size = 2 * keys.length
    keys = keys ++ Array.fill(keys.length)(Array.emptyByteArray)
    keyLengths = Arrays.copyOf(keyLengths, size)
    numbers.indices.foreach(i => numbers(i) = Arrays.copyOf(numbers(i), size))
  }

  /** Bytes that a block needs besides its fixed columns, at most. Each value may need a window. */
  def bytes(places: Array[Int], from: Int, count: Int): Long = {
    var sum = count.toLong * Layout.Window.SIZE
    var i = from
    while (i < from + count) {
      sum += keyLengths(places(i))
      i += 1
    }
    sum
  }

  /** Bytes of the data. */
  def referencedBytes(places: Array[Int], from: Int, count: Int): Long = {
    var sum = 0L
    var i = from
    while (i < from + count) {
      sum += data.lengths(places(i))
      i += 1
    }
    sum
  }

  def write(
      to: ElementWriter, file: ForeignFile, places: Array[Int], from: Int, count: Int): Unit = {
    if (count > lengths.length) {
      lengths = new Array(count)
      bits = new Array(count)
    }
    var i = 0
    while (i < count) {
      lengths(i) = keyLengths(places(from + i))
      bits(i) = numbers(Datum.Encoded)(places(from + i)).toByte
      i += 1
    }
    if (wanted(Datum.Key) >= 0) {
      val space = to.reserveBytes(wanted(Datum.Key), lengths, 0, count)
      i = 0
      while (i < count) {
        space.put(keys(places(from + i)), 0, lengths(i))
        i += 1
      }
    }
    var column = Datum.Label
    while (column < Datum.Encoded) {
      if (wanted(column) >= 0)
        gather(numbers(column), places, from, count, to.reserveValues(wanted(column), count))
      column += 1
    }
    if (wanted(Datum.Encoded) >= 0) to.putBits(wanted(Datum.Encoded), bits, 0, count)
    if (wanted(Datum.Data) >= 0) to.refer(wanted(Datum.Data), file, data, places, from, count)
  }

  private def gather(
      of: Array[Int], places: Array[Int], from: Int, count: Int, to: ByteBuffer): Unit = {
    var i = from
    while (i < from + count) {
      to.putInt(of(places(i)))
      i += 1
    }
  }

  /** Writes one of them. */
  def write(to: ElementWriter, file: ForeignFile, place: Int): Unit = {
    single(0) = place
    write(to, file, single, 0, 1)
  }

  def describe(place: Int): String =
    s"the element '${Datum.printable(keys(place).take(keyLengths(place)))}' (${data.lengths(place)} bytes of data)"
}

private[lmdb] object DatumReferences {
  /** Places that there are at first. */
  final val Places = 256

  /** Columns before the data; that of the key has no numbers. */
  private final val Numbers = Datum.Data
}
