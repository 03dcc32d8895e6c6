package supply.sources

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.rdd.RDD
import org.apache.spark.{Partition, TaskContext}

import supply.core.SourceException
import supply.data.{ElementWriter, ForeignFile, ForeignValues, KeepingCursor, Source}
import supply.protocol.{Column, Schema}

/** Caffe's Datum: the paper's tuple of seven values, and the columns of a block. */
object Datum {
  /**
   * (key, label, channels, height, width, encoded, data). The key has one char per byte
   * (ISO-8859-1), so it holds any bytes. The label is a decimal number. The data is channels ×
   * height × width as stored, or an encoded image, or little-endian float32.
   */
  type Tuple = (String, String, Int, Int, Int, Boolean, Array[Byte])

  val schema: Schema = Schema(Vector(
      Column("key", "z"),
      Column("label", "i"),
      Column("channels", "i"),
      Column("height", "i"),
      Column("width", "i"),
      Column("encoded", "b"),
      Column("data", "z")))

  /** The schema with views of data that ranks read in place. */
  val inPlaceSchema: Schema = Schema(schema.columns.updated(6, Column("data", "vz")))

  final val Key = 0
  final val Label = 1
  final val Channels = 2
  final val Height = 3
  final val Width = 4
  final val Encoded = 5
  final val Data = 6

  /** A key as supply-cat prints it. */
  def printable(key: Array[Byte]): String = key.map { byte =>
    if (byte >= 0x20 && byte < 0x7f && byte != '\\') byte.toChar.toString
    else f"\\x${byte & 0xff}%02x"
  }.mkString
}

/** Takes copies of Datums, which have no nulls. */
trait DatumWriter extends ElementWriter {
  override final def putNull(column: Int): Unit = throw new UnsupportedOperationException

  override final def refer(column: Int, file: ForeignFile, values: ForeignValues,
      places: Array[Int], from: Int, count: Int): Unit = throw new UnsupportedOperationException
}

/** A cursor over tuples that Spark computes, caches or reads back from its spill. */
final class DatumCursor(tuples: Iterator[Datum.Tuple]) extends KeepingCursor {
  private var tuple: Datum.Tuple = _
  private val kept = new ArrayBuffer[Datum.Tuple]

  override def next(): Boolean = {
    val more = tuples.hasNext
    if (more) tuple = tuples.next()
    more
  }

  override def keep(place: Int): Unit =
    if (place < kept.size) kept(place) = tuple else kept += tuple

  override def recall(place: Int): Unit = tuple = kept(place)

  // Field by field, because a pattern would box each number again.
  override def write(to: ElementWriter): Unit = {
    writeKey(to, tuple._1)
    to.putInt(Datum.Label, label)
    to.putInt(Datum.Channels, tuple._3)
    to.putInt(Datum.Height, tuple._4)
    to.putInt(Datum.Width, tuple._5)
    to.putBoolean(Datum.Encoded, tuple._6)
    val data = tuple._7
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
    try tuple._2.toInt
    catch {
      case e: NumberFormatException =>
        throw new SourceException(
          s"the label '${tuple._2}' of $describe is not a 32-bit number, as a Datum's label is", e)
    }

  override def describe: String = s"the element '${tuple._1}' (${tuple._7.length} bytes of data)"

  override def close(): Unit = ()
}

/** Any RDD of Datum tuples. Nobody may change a tuple's array: it may be written later. */
final class DatumSource(override val rdd: RDD[Datum.Tuple]) extends Source {
  override def schema: Schema = Datum.schema
  override def mainColumn: Option[Int] = Some(Datum.Data)
  override def open(partition: Partition, context: TaskContext): KeepingCursor =
    new DatumCursor(rdd.iterator(partition, context))
}

/** An LMDB that Spark persists, as batches from its cache or spill. */
final class DatumBatchSource(override val rdd: RDD[DatumBatch],
    override val partitionElements: Option[IndexedSeq[Long]],
    override val identity: Option[String] = None, override val bytes: Option[Long] = None)
    extends Source {
  override def schema: Schema = Datum.schema
  override def mainColumn: Option[Int] = Some(Datum.Data)
  override def open(partition: Partition, context: TaskContext): KeepingCursor =
    new DatumBatchCursor(rdd.iterator(partition, context))
}
