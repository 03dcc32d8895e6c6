package supply.bench

import java.nio.ByteBuffer
import java.util.zip.CRC32

import scala.reflect.ClassTag

import org.apache.spark.rdd.RDD

import supply.lmdb.Datum
import supply.source.{ElementCursor, ElementWriter}

/** Counts the content of a source, as a rank counts what it receives. */
private[bench] object SourceTally {
  /** @param open makes a cursor over the elements of one partition */
  def of[T: ClassTag](rdd: RDD[T])(open: Iterator[T] => ElementCursor): Tally = {
    val (count, bytes, crcSum) = rdd.mapPartitions { values =>
      val tally = new TallyingWriter
      val cursor = open(values)
      while (cursor.next()) {
        cursor.write(tally)
        tally.endElement()
      }
      Iterator.single((tally.elements, tally.bytes, tally.crcSum))
    }.fold((0L, 0L, 0L)) { (a, b) => (a._1 + b._1, a._2 + b._2, a._3 + b._3) }
    Tally(count, bytes, BigInt(java.lang.Long.toUnsignedString(crcSum)))
  }
}

private final class TallyingWriter extends ElementWriter {
  private val crc = new CRC32
  private var other = ByteBuffer.allocate(256)
  private var data = ByteBuffer.allocate(256)
  var elements = 0L
  var bytes = 0L
  var crcSum = 0L

  override def putInt(column: Int, value: Int): Unit = ()

  override def putBoolean(column: Int, value: Boolean): Unit = ()

  override def reserve(column: Int, count: Int): ByteBuffer =
    if (column == Datum.Data) { data = emptied(data, count); data }
    else { other = emptied(other, count); other }

  private def emptied(buffer: ByteBuffer, count: Int): ByteBuffer =
    if (count > buffer.capacity()) ByteBuffer.allocate(count) else buffer.clear()

  def endElement(): Unit = {
    data.flip()
    elements += 1
    bytes += data.remaining()
    crc.reset()
    crc.update(data)
    crcSum += crc.getValue
  }
}
