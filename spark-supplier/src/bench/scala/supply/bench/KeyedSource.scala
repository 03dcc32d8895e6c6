package supply.bench

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.rdd.RDD

import supply.bench.KeyedPairs.Pair
import supply.protocol.{Column, Schema}
import supply.source.{ElementWriter, KeepingCursor, Source}

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

private final class KeyedCursor(pairs: Iterator[Pair]) extends IteratorCursor(pairs) {
  override def write(to: ElementWriter): Unit = {
    to.putLong(KeyedSource.Key, value._1)
    val bytes = value._2
    to.reserve(KeyedSource.Value, bytes.length).put(bytes)
    ()
  }

  override def describe: String = s"the pair with the key ${value._1}"
}
