package supply.sources.lmdb

import scala.collection.mutable.ArrayBuffer

import supply.core.SourceException
import supply.data.{ElementWriter, ForeignFile, KeepingCursor}

/** The Datums of one partition, for ranks that read the data in the LMDB itself. */
final class LmdbInPlaceCursor(
    file: ForeignFile, partition: LmdbPartition, window: Long = MappedWindow.bytes)
    extends KeepingCursor {
  private val entries = new PartitionWalk(file.path, partition, window)
  private val datum = new DatumReader
  private var range = MappedRange.Empty
  private var rangeMapping = 0
  private val kept = new ArrayBuffer[DatumReference]

  /** Of the entry that the walk is at. */
  private var read = new DatumReference
  private var current = read

  override def next(): Boolean = entries.next() && {
    val walk = entries.walk
    entries.read(datum, walk.key, walk.value, walk.value.capacity())
    if (datum.dataOffset < 0)
      throw new SourceException(
        s"the float_data of key '${entries.printable(walk.key)}' of the LMDB ${file.path} is not packed, and ranks " +
          "cannot read it in place: supply it without --in-place")
    val address = walk.value.addressOffset + datum.dataOffset
    // A later mapping may cover addresses of an earlier one, and begin elsewhere.
    if (rangeMapping != walk.mappingCount || !range.contains(address)) {
      range = MappedRange.around(address, file)
      rangeMapping = walk.mappingCount
    }
    read.set(walk.key, walk.value, datum, range.offsetOf(address))
    current = read
    true
  }

  override def keep(place: Int): Unit =
    if (place == kept.size) {
      kept += read
      read = new DatumReference
    } else {
      val free = kept(place)
      kept(place) = read
      read = free
    }

  override def recall(place: Int): Unit = current = kept(place)

  override def write(to: ElementWriter): Unit = current.write(to, file)

  override def describe: String = current.describe

  override def close(): Unit = entries.close()
}
