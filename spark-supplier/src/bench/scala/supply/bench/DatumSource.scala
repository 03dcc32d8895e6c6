package supply.bench

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.rdd.RDD
import org.apache.spark.{Partition, TaskContext}

import supply.core.SourceException
import supply.lmdb.Datum
import supply.protocol.Schema
import supply.source.{ElementWriter, KeepingCursor, KeepingSource}

/** Any RDD of Datum tuples, for tests and benchmarks. Nobody may change a tuple's array: it may be written later. */
final class DatumSource(override val rdd: RDD[Datum.Tuple]) extends KeepingSource {
  override def schema: Schema = Datum.schema
  override def mainColumn: Option[Int] = Some(Datum.Data)
  override def open(partition: Partition, context: TaskContext): KeepingCursor =
    new DatumCursor(rdd.iterator(partition, context))
}

/** A cursor over tuples that Spark computes, caches or reads back from its spill. */
final class DatumCursor(tuples: Iterator[Datum.Tuple]) extends KeepingCursor {
  private var value: Datum.Tuple = _
  private val kept = new ArrayBuffer[Datum.Tuple]

  override def next(): Boolean = {
    val more = tuples.hasNext
    if (more) value = tuples.next()
    more
  }

  override def keep(place: Int): Unit =
    if (place < kept.size) kept(place) = value else kept += value

  override def recall(place: Int): Unit = value = kept(place)

  override def close(): Unit = ()

  // Field by field, because a pattern would box each number again.
  override def write(to: ElementWriter): Unit = {
    writeKey(to, value._1)
    to.putInt(Datum.Label, label)
    to.putInt(Datum.Channels, value._3)
    to.putInt(Datum.Height, value._4)
    to.putInt(Datum.Width, value._5)
    to.putBoolean(Datum.Encoded, value._6)
    val data = value._7
    to.reserve(Datum.Data, data.length).put(data)
    ()
  }

  private def writeKey(to: ElementWriter, key: String): Unit = {
    val space = to.reserve(Datum.Key, key.length)
    var i = 0
    while (i < key.length) {
      val char = key.charAt(i)
      if (char > 0xff)
        throw new SourceException(
          s"the key '$key' has a character above U+00FF: a key has one char per byte (ISO-8859-1)")
      space.put(char.toByte)
      i += 1
    }
  }

  private def label: Int =
    try value._2.toInt
    catch {
      case e: NumberFormatException =>
        throw new SourceException(
          s"the label '${value._2}' of $describe is not a 32-bit number, as a Datum's label is", e)
    }

  override def describe: String = s"the element '${value._1}' (${value._7.length} bytes of data)"
}
