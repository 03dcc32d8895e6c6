package supply.sources

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.rdd.RDD

import supply.data.{KeepingCursor, Source}
import supply.protocol.Schema

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
