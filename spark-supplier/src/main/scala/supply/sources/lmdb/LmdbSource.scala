package supply.sources.lmdb

import org.apache.spark.{Partition, TaskContext}

import supply.data.{KeepingCursor, Source}
import supply.protocol.Schema
import supply.sources.Datum

/** An LMDB that is not persisted: copied from its own pages, without a tuple in between. */
final class LmdbSource(override val rdd: LmdbRDD) extends Source {
  override def schema: Schema = Datum.schema
  override def mainColumn: Option[Int] = Some(Datum.Data)
  override def partitionElements: Option[IndexedSeq[Long]] = Some(rdd.partitionEntries)
  override def open(partition: Partition, context: TaskContext): KeepingCursor =
    rdd.cursor(partition, context)
}
