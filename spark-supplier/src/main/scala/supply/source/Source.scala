package supply.source

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.rdd.RDD

import supply.contract.{ElementCursor, Schema}
import supply.source.lmdb.LmdbRDD

/**
 * A data set that can be supplied: an RDD, and how the elements of one of its partitions become
 * columns.
 */
// Java's Serializable: Supplier has to load also where Scala is another one (BuiltFor), and Scala 2.12 has one of its own.
trait Source extends java.io.Serializable {
  def rdd: RDD[_]
  def schema: Schema

  /**
   * Index of the column with the most bytes, which is written straight into the mapped file; none
   * where all are small.
   */
  def mainColumn: Option[Int]

  /** Elements of each partition, where they are known beforehand. */
  def partitionElements: Option[IndexedSeq[Long]] = None

  /** The elements of one partition. */
  def open(partition: Partition, context: TaskContext): ElementCursor
}

/**
 * Any RDD of Datum tuples, from Spark's cache or spill where it is persisted. A tuple stays as it
 * is, its array too: shuffled, it is written later than it comes.
 */
final class DatumSource(override val rdd: RDD[Datum.Tuple]) extends Source {
  override def schema: Schema = Datum.schema
  override def mainColumn: Option[Int] = Some(Datum.Data)
  override def open(partition: Partition, context: TaskContext): ElementCursor =
    new DatumCursor(rdd.iterator(partition, context))
}

/** An LMDB that Spark persists: its elements as batches, from Spark's cache or spill. */
final class DatumBatchSource(override val rdd: RDD[DatumBatch],
    override val partitionElements: Option[IndexedSeq[Long]])
    extends Source {
  override def schema: Schema = Datum.schema
  override def mainColumn: Option[Int] = Some(Datum.Data)
  override def open(partition: Partition, context: TaskContext): ElementCursor =
    new DatumBatchCursor(rdd.iterator(partition, context))
}

/**
 * An LMDB that is not persisted: from LMDB's own pages into the mapped file, without a tuple in
 * between.
 */
final class LmdbSource(override val rdd: LmdbRDD) extends Source {
  override def schema: Schema = Datum.schema
  override def mainColumn: Option[Int] = Some(Datum.Data)
  override def partitionElements: Option[IndexedSeq[Long]] = Some(rdd.partitionEntries)
  override def open(partition: Partition, context: TaskContext): ElementCursor =
    rdd.cursor(partition, context)
}
