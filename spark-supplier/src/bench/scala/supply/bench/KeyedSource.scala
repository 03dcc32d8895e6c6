package supply.bench

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.rdd.RDD

import supply.bench.KeyedPairs.Pair
import supply.data.{ElementWriter, KeepingCursor, Source}
import supply.protocol.{Column, Schema}

/** Pairs that an RDD has cached. Nothing is copied except into the mapped file. */
private[bench] final class KeyedSource(override val rdd: RDD[Pair]) extends Source {
  override def schema: Schema = Schema(Vector(Column("key", "l"), Column("value", "z")))

  override def mainColumn: Option[Int] = Some(KeyedSource.Value)

  override def open(partition: Partition, context: TaskContext): KeepingCursor =
    new KeyedCursor(rdd.iterator(partition, context))
}

private object KeyedSource {
  final val Key = 0
  final val Value = 1
}

private final class KeyedCursor(pairs: Iterator[Pair]) extends KeepingCursor {
  private var pair: Pair = _
  private val kept = new ArrayBuffer[Pair]

  override def next(): Boolean = {
    val more = pairs.hasNext
    if (more) pair = pairs.next()
    more
  }

  override def keep(place: Int): Unit =
    if (place < kept.size) kept(place) = pair else kept += pair

  override def recall(place: Int): Unit = pair = kept(place)

  override def write(to: ElementWriter): Unit = {
    to.putLong(KeyedSource.Key, pair._1)
    val value = pair._2
    to.reserve(KeyedSource.Value, value.length).put(value)
    ()
  }

  override def describe: String = s"the pair with the key ${pair._1}"

  override def close(): Unit = ()
}
