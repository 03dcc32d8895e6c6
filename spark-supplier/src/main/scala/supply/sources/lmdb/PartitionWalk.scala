package supply.sources.lmdb

import org.fusesource.lmdbjni.DirectBuffer

import supply.core.SourceException
import supply.sources.Datum

/** Walks over the entries of one partition. `walk` is at the current one. For one thread. */
private[lmdb] final class PartitionWalk(file: String, partition: LmdbPartition, window: Long)
    extends AutoCloseable {
  val walk = new LmdbWalk(file, window, partition.skip)
  private var taken = 0L

  /** Moves to the next entry; false at the end. */
  def next(): Boolean = taken < partition.entries && {
    val found = if (taken == 0) walk.seek(partition.firstKey) else walk.next()
    if (!found)
      throw new SourceException(
        s"the LMDB $file has changed since it was planned: partition ${partition.index} ended after " +
          s"$taken of ${partition.entries} entries. It must not be written to during a run")
    taken += 1
    true
  }

  /** Reads a Datum; `key` is for the message if it is none. */
  def read(datum: DatumReader, key: DirectBuffer, value: DirectBuffer, valueBytes: Int): Unit =
    PartitionWalk.read(datum, file, key, value, valueBytes)

  def printable(key: DirectBuffer): String = PartitionWalk.printable(key)

  override def close(): Unit = walk.close()
}

private[lmdb] object PartitionWalk {
  def read(datum: DatumReader, file: String, key: DirectBuffer, value: DirectBuffer,
      valueBytes: Int): Unit =
    try datum.read(value, valueBytes)
    catch {
      case e: DatumReader.NotADatum =>
        throw new SourceException(
          s"the value of key '${printable(key)}' of the LMDB $file is not a Datum: ${e.getMessage}. If this entry is " +
            "none, leave it out (--skip-keys, option skipKeys)")
    }

  def printable(key: DirectBuffer): String = Datum.printable(LmdbWalk.bytes(key))
}
