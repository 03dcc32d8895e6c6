package supply.sources.lmdb

import java.nio.charset.StandardCharsets.ISO_8859_1

import org.fusesource.lmdbjni.DirectBuffer

import supply.data.{ElementWriter, KeepingCursor}
import supply.sources.Datum

/**
 * The Datums of one partition, on LMDB's own pages: nothing is allocated or copied per element. If
 * the whole file stays mapped ([[MappedWindow]]), elements are kept in place, else as copies.
 */
final class LmdbCursor(file: String, partition: LmdbPartition, window: Long = MappedWindow.bytes)
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

  /** The current element as Spark can keep it. */
  def tuple: Datum.Tuple = {
    val data = java.nio.ByteBuffer.allocate(datum.dataBytes)
    datum.copyData(data)
    (new String(LmdbWalk.bytes(key), ISO_8859_1), datum.label.toString, datum.channels,
      datum.height, datum.width, datum.encoded, data.array())
  }

  /** Each element that is left, as `make` gets it from this cursor; closes it at the end. */
  def map[A](make: LmdbCursor => A): Iterator[A] = new Iterator[A] {
    private var ahead = moved()

    private def moved(): Boolean = {
      val more = LmdbCursor.this.next()
      if (!more) close()
      more
    }

    override def hasNext: Boolean = ahead

    override def next(): A = {
      val element = make(LmdbCursor.this)
      ahead = moved()
      element
    }
  }

  override def describe: String =
    s"the element '${entries.printable(key)}' (${datum.dataBytes} bytes of data)"

  override def close(): Unit = entries.close()
}
