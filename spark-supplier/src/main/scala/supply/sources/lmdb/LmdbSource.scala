package supply.sources.lmdb

import org.apache.spark.{Partition, TaskContext}

import supply.data.{KeepingCursor, Source}
import supply.protocol.Schema
import supply.sources.Datum

/**
 * An LMDB that is not persisted: read from its own pages, without a tuple in between.
 *
 * @param inPlace whether the ranks read the data there, too, instead of copies
 */
final class LmdbSource(override val rdd: LmdbRDD, inPlace: Boolean) extends Source {
  override def schema: Schema = if (inPlace) Datum.inPlaceSchema else Datum.schema
  override def mainColumn: Option[Int] = Some(Datum.Data)
  override def partitionElements: Option[IndexedSeq[Long]] = Some(rdd.partitionEntries)
  override def identity: Option[String] = Some(rdd.identity)
  override def bytes: Option[Long] = Some(rdd.bytes)
  override def open(partition: Partition, context: TaskContext): KeepingCursor =
    if (inPlace) rdd.inPlaceCursor(partition, context) else rdd.cursor(partition, context)
}
