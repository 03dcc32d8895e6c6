package supply.lmdb

import java.nio.{ByteBuffer, ByteOrder}

import org.apache.spark.rdd.RDD
import org.apache.spark.{Partition, TaskContext}

import supply.protocol.Schema
import supply.source._

/** Some columns of another source. `taken` has their indexes there, in their new order. */
private[supply] final class SelectedSource(source: KeepingSource, taken: IndexedSeq[Int])
    extends KeepingSource {
  override def rdd: RDD[_] = source.rdd

  override def schema: Schema = Schema(taken.map(source.schema.columns))

  override def mainColumn: Option[Int] = source.mainColumn.map(taken.indexOf(_)).filter(_ >= 0)

  override def partitionElements: Option[IndexedSeq[Long]] = source.partitionElements

  override def partitionSizes: Option[PartitionSizes] = source.partitionSizes

  override def isOrdered: Boolean = source.isOrdered

  override def identity: Option[String] = source.identity

  /** Without the main column nearly nothing of that is left. */
  override def bytes: Option[Long] = source.bytes.filter(_ => mainColumn.isDefined)

  override def open(partition: Partition, context: TaskContext): KeepingCursor = {
    val places = source.schema.columns.indices.map(taken.indexOf(_)).toArray
    SelectedCursor(source.open(partition, context), new SelectedWriter(places))
  }
}

private sealed class SelectedCursor(cursor: KeepingCursor, selected: SelectedWriter)
    extends KeepingCursor {
  override def next(): Boolean = cursor.next()

  override def keep(place: Int): Unit = cursor.keep(place)

  override def recall(place: Int): Unit = cursor.recall(place)

  override def write(to: ElementWriter): Unit = cursor.write(selected.passOnTo(to))

  override def describe: String = cursor.describe

  override def close(): Unit = cursor.close()
}

private object SelectedCursor {
  def apply(cursor: KeepingCursor, selected: SelectedWriter): SelectedCursor = cursor match {
    case many: GatheringCursor => new SelectedBatchCursor(many, selected)
    case one => new SelectedCursor(one, selected)
  }
}

/** Bytes of columns that are not selected count, too: that is a bound. */
private final class SelectedBatchCursor(
    cursor: GatheringCursor, selected: SelectedWriter)
    extends SelectedCursor(cursor, selected) with GatheringCursor {
  override def ready: Int = cursor.ready

  override def bytes(count: Int): Long = cursor.bytes(count)

  override def referencedBytes(count: Int): Long = cursor.referencedBytes(count)

  override def write(to: ElementWriter, count: Int): Unit =
    cursor.write(selected.passOnTo(to), count)

  override def bytes(places: Array[Int], from: Int, count: Int): Long =
    cursor.bytes(places, from, count)

  override def referencedBytes(places: Array[Int], from: Int, count: Int): Long =
    cursor.referencedBytes(places, from, count)

  override def write(to: ElementWriter, places: Array[Int], from: Int, count: Int): Unit =
    cursor.write(selected.passOnTo(to), places, from, count)
}

/** Passes on the values of some columns. `places`: where each column goes; -1: nowhere. */
private[lmdb] final class SelectedWriter(places: Array[Int]) extends ElementWriter {
  private var to: ElementWriter = _

  /** Takes the bytes that nobody wants. */
  private var unwanted = ByteBuffer.allocate(0)

  def passOnTo(writer: ElementWriter): SelectedWriter = {
    to = writer
    this
  }

  private def isTaken(column: Int) = places(column) >= 0

  private def discard(bytes: Int): ByteBuffer = {
    if (bytes > unwanted.capacity())
      unwanted = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN)
    unwanted.clear().limit(bytes)
  }

  override def putInt(column: Int, value: Int): Unit =
    if (isTaken(column)) to.putInt(places(column), value)

  override def putBoolean(column: Int, value: Boolean): Unit =
    if (isTaken(column)) to.putBoolean(places(column), value)

  override def reserve(column: Int, bytes: Int): ByteBuffer =
    if (isTaken(column)) to.reserve(places(column), bytes) else discard(bytes)

  override def refer(column: Int, file: ForeignFile, values: ForeignValues, at: Array[Int],
      from: Int, count: Int): Unit =
    if (isTaken(column)) to.refer(places(column), file, values, at, from, count)

  /** Of numbers of 32 bits. */
  override def reserveValues(column: Int, count: Int): ByteBuffer =
    if (isTaken(column)) to.reserveValues(places(column), count)
    else discard(Integer.BYTES * count)

  override def reserveBytes(
      column: Int, lengths: Array[Int], from: Int, count: Int): ByteBuffer =
    if (isTaken(column)) to.reserveBytes(places(column), lengths, from, count)
    else discard(lengths.slice(from, from + count).sum)

  override def putBits(column: Int, values: Array[Byte], from: Int, count: Int): Unit =
    if (isTaken(column)) to.putBits(places(column), values, from, count)
}
