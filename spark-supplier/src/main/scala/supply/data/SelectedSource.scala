package supply.data

import java.nio.{ByteBuffer, ByteOrder}

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.rdd.RDD

import supply.protocol.Schema

/** Some columns of another source. `taken` has their indexes there, in their new order. */
final class SelectedSource(source: Source, taken: IndexedSeq[Int]) extends Source {
  override def rdd: RDD[_] = source.rdd

  override def schema: Schema = Schema(taken.map(source.schema.columns))

  override def mainColumn: Option[Int] = source.mainColumn.map(taken.indexOf(_)).filter(_ >= 0)

  override def partitionElements: Option[IndexedSeq[Long]] = source.partitionElements

  override def open(partition: Partition, context: TaskContext): KeepingCursor =
    new SelectedCursor(source.open(partition, context),
      source.schema.columns.indices.map(taken.indexOf(_)).toArray)
}

/** `places`: where each column of the cursor goes; -1: nowhere. */
private final class SelectedCursor(cursor: KeepingCursor, places: Array[Int])
    extends KeepingCursor {
  private val selected = new SelectedWriter(places)

  override def next(): Boolean = cursor.next()

  override def keep(place: Int): Unit = cursor.keep(place)

  override def recall(place: Int): Unit = cursor.recall(place)

  override def write(to: ElementWriter): Unit = {
    selected.to = to
    cursor.write(selected)
  }

  override def describe: String = cursor.describe

  override def close(): Unit = cursor.close()
}

private final class SelectedWriter(places: Array[Int]) extends ElementWriter {
  var to: ElementWriter = _

  /** Takes the bytes that nobody wants. */
  private var unwanted = ByteBuffer.allocate(0)

  override def putInt(column: Int, value: Int): Unit =
    if (places(column) >= 0) to.putInt(places(column), value)

  override def putBoolean(column: Int, value: Boolean): Unit =
    if (places(column) >= 0) to.putBoolean(places(column), value)

  override def putNull(column: Int): Unit = if (places(column) >= 0) to.putNull(places(column))

  override def reserve(column: Int, bytes: Int): ByteBuffer =
    if (places(column) >= 0) to.reserve(places(column), bytes)
    else {
      if (bytes > unwanted.capacity())
        unwanted = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN)
      unwanted.clear().limit(bytes)
    }

  override def refer(column: Int, file: ForeignFile, values: ForeignValues, at: Array[Int],
      from: Int, count: Int): Unit =
    if (places(column) >= 0) to.refer(places(column), file, values, at, from, count)
}
