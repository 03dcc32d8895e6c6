package supply.lmdb

import java.util.Arrays

import scala.collection.mutable.ArrayBuffer

import org.fusesource.lmdbjni.DirectBuffer

import supply.source.{ElementWriter, KeepingCursor}

/**
 * The Datums of one partition, on LMDB's own pages: nothing is allocated or copied per element. If
 * the whole file stays mapped ([[MappedWindow]]), elements are kept in place, else as copies.
 */
private[supply] final class LmdbCursor(file: String, partition: LmdbPartition,
    window: Long = MappedWindow.bytes)
    extends KeepingCursor {
  private val entries = new PartitionWalk(file, partition, window)
  private val walk = entries.walk
  private val kept = if (window < Long.MaxValue) new CopiedEntries else new MappedEntries
  private var key = walk.key
  private val datum = new DatumReader

  override def next(): Boolean = entries.next() && {
    read(walk.key, walk.value, walk.value.capacity())
    true
  }

  override def keep(place: Int): Unit = kept.keep(place, walk.key, walk.value)

  override def recall(place: Int): Unit = {
    kept.recall(place)
    read(kept.key, kept.value, kept.valueBytes)
  }

  private def read(key: DirectBuffer, value: DirectBuffer, valueBytes: Int): Unit = {
    this.key = key
    entries.read(datum, key, value, valueBytes)
  }

  override def write(to: ElementWriter): Unit = {
    key.getBytes(0, to.reserve(Datum.Key, key.capacity()), key.capacity())
    to.putInt(Datum.Label, datum.label)
    to.putInt(Datum.Channels, datum.channels)
    to.putInt(Datum.Height, datum.height)
    to.putInt(Datum.Width, datum.width)
    to.putBoolean(Datum.Encoded, datum.encoded)
    datum.copyData(to.reserve(Datum.Data, datum.dataBytes))
  }

  override def describe: String =
    s"the element '${entries.printable(key)}' (${datum.dataBytes} bytes of data)"

  override def close(): Unit = entries.close()
}

/** Entries of an LMDB that a cursor keeps in numbered places, see [[supply.source.KeepingCursor]]. */
private[lmdb] sealed abstract class KeptEntries {
  /** The recalled entry: its key, and the buffer whose first `valueBytes` bytes are its value. */
  final val key = new DirectBuffer(Array.emptyByteArray)
  final val value = new DirectBuffer(Array.emptyByteArray)
  var valueBytes = 0

  def keep(place: Int, key: DirectBuffer, value: DirectBuffer): Unit

  def recall(place: Int): Unit
}

/** Keeps the addresses of entries in a file that stays mapped. */
private[lmdb] final class MappedEntries extends KeptEntries {
  /** For each place the key, then the value. */
  private var addresses = new Array[Long](128)
  private var lengths = new Array[Int](128)

  /** The smallest page of memory: if one byte of it is mapped, all are. */
  private val page = 4096

  /** Keeps the reads that only fetch memory from being optimized away. */
  private var fetched = 0

  override def keep(place: Int, key: DirectBuffer, value: DirectBuffer): Unit = {
    val at = 2 * place
    if (at == addresses.length) {
      addresses = Arrays.copyOf(addresses, 2 * at)
      lengths = Arrays.copyOf(lengths, 2 * at)
    }
    addresses(at) = key.addressOffset
    lengths(at) = key.capacity()
    addresses(at + 1) = value.addressOffset
    lengths(at + 1) = value.capacity()
  }

  override def recall(place: Int): Unit = {
    val at = 2 * place
    key.wrap(addresses(at), lengths(at))
    value.wrap(addresses(at + 1), lengths(at + 1))
    valueBytes = lengths(at + 1)
  }

  /**
   * Fetches the entry after the one in `place`: entries of a page lie one below the other. The
   * address is a guess, so it is read only if it lies in the page of this one.
   */
  def fetchNext(place: Int): Unit = if (place > 0) {
    val here = addresses(2 * place)
    val next = 2 * here - addresses(2 * place - 2)
    // Addresses in one page differ only in what is smaller than it.
    if ((next ^ here) < page && next > 0) {
      key.wrap(next, 1)
      fetched += key.getByte(0)
    }
  }

  /**
   * Fetches the first and the last byte of the values in places below `count`, next to which the
   * numbers of a Datum are. No read depends on another one, so their waits for memory overlap.
   */
  def fetch(count: Int): Unit = {
    var at = 1
    while (at < 2 * count) {
      val bytes = lengths(at)
      if (bytes > 0) {
        value.wrap(addresses(at), bytes)
        fetched += value.getByte(0) ^ value.getByte(bytes - 1)
      }
      at += 2
    }
  }
}

/** Keeps copies, in memory that later entries of the same place use again. */
private[lmdb] final class CopiedEntries extends KeptEntries {
  private final class Copy {
    var key = Array.emptyByteArray
    var value = Array.emptyByteArray
    var valueBytes = 0
  }

  private val copies = new ArrayBuffer[Copy]

  override def keep(place: Int, key: DirectBuffer, value: DirectBuffer): Unit = {
    if (place == copies.size) copies += new Copy
    val copy = copies(place)
    if (copy.key.length != key.capacity()) copy.key = new Array(key.capacity())
    key.getBytes(0, copy.key)
    copy.valueBytes = value.capacity()
    if (copy.value.length < copy.valueBytes) copy.value = new Array(copy.valueBytes)
    value.getBytes(0, copy.value, 0, copy.valueBytes)
    ()
  }

  override def recall(place: Int): Unit = {
    val copy = copies(place)
    key.wrap(copy.key)
    value.wrap(copy.value)
    valueBytes = copy.valueBytes
  }
}
