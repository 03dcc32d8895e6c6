package supply.sources.lmdb

import supply.core.SourceException
import supply.data.{BatchCursor, BatchWriter, ElementWriter, ForeignFile, GatheringCursor}
import supply.protocol.Layout.Constant.VIEW_INLINE_MAX

/**
 * The Datums of one partition, for ranks that read the data in the LMDB itself. It reads some
 * hundred entries ahead, because writing them column by column takes a third of the time.
 */
final class LmdbInPlaceCursor(
    file: ForeignFile, partition: LmdbPartition, window: Long = MappedWindow.bytes)
    extends BatchCursor with GatheringCursor {
  private val entries = new PartitionWalk(file.path, partition, window)
  private val datum = new DatumReader

  /** The entries that were read last, and the number of the newest that was moved to. */
  private val ahead = new DatumReferences
  private var aheadCount = 0
  private var newest = -1
  private lazy val kept = new DatumReferences

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
    newest = 0
    aheadCount = 0
    while (aheadCount < DatumReferences.Places && entries.next()) {
      read(aheadCount)
      aheadCount += 1
    }
  }

  private def read(place: Int): Unit = {
    val walk = entries.walk
    entries.read(datum, walk.key, walk.value, walk.value.capacity())
    if (datum.dataOffset < 0)
      throw new SourceException(
        s"the float_data of key '${entries.printable(walk.key)}' of the LMDB ${file.path} is not packed, and ranks " +
          "cannot read it in place (--in-place, inPlace): supply it without that option")
    // A short value stands in its view. An empty one may lie at the end of the mapping.
    val offset =
      if (datum.dataBytes > VIEW_INLINE_MAX)
        walk.offsetOf(walk.value.addressOffset + datum.dataOffset, file)
      else 0
    ahead.set(place, walk.key, walk.value, datum, offset)
  }

  override def write(to: ElementWriter): Unit = current.write(to, file, at)

  override def ready: Int = if (current eq ahead) aheadCount - at else 0

  override def bytes(count: Int): Long = ahead.bytes(LmdbInPlaceCursor.Places, at, count)

  override def referencedBytes(count: Int): Long =
    ahead.referencedBytes(LmdbInPlaceCursor.Places, at, count)

  override def write(to: BatchWriter, count: Int): Unit = {
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

  override def write(to: BatchWriter, places: Array[Int], from: Int, count: Int): Unit =
    kept.write(to, file, places, from, count)

  override def describe: String = current.describe(at)

  override def close(): Unit = entries.close()
}

private object LmdbInPlaceCursor {
  /** Entries read ahead lie in their order. */
  private val Places = Array.range(0, DatumReferences.Places)
}
