package supply.sources.lmdb

import java.nio.charset.StandardCharsets.ISO_8859_1

import supply.core.SourceException
import supply.data.{ElementCursor, ElementWriter}
import supply.sources.Datum

/**
 * The Datums of one partition of an LMDB, on LMDB's own pages: nothing is allocated or copied per
 * element.
 */
class LmdbCursor(file: String, partition: LmdbPartition) extends ElementCursor {
  protected final val walk = new LmdbWalk(file)
  private val datum = new DatumReader
  private var taken = 0L

  override def next(): Boolean = taken < partition.entries && {
    val found = if (taken == 0) walk.seek(partition.firstKey) else walk.next()
    if (!found) {
      throw new SourceException(
        s"the LMDB $file has changed since it was planned: partition ${partition.index} ended after " +
          s"$taken of ${partition.entries} entries. It must not be written to during a run")
    }
    taken += 1
    read()
    true
  }

  protected final def read(): Unit =
    try datum.read(walk.value)
    catch {
      case e: DatumReader.NotADatum =>
        throw new SourceException(
          s"the value of key '$printableKey' of the LMDB $file is not a Datum: ${e.getMessage}")
    }

  override def write(to: ElementWriter): Unit = {
    val key = walk.key
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
    (new String(walk.keyBytes, ISO_8859_1), datum.label.toString, datum.channels, datum.height,
      datum.width, datum.encoded,
      data.array())
  }

  override def describe: String = s"the element '$printableKey' (${datum.dataBytes} bytes of data)"

  private def printableKey: String = Datum.printable(walk.keyBytes)

  override def close(): Unit = walk.close()
}
