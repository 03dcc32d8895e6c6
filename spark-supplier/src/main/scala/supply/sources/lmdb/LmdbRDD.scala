package supply.sources.lmdb

import org.apache.spark.{Partition, SparkContext, TaskContext}
import org.apache.spark.rdd.RDD

import supply.sources.{Datum, DatumBatch}

/**
 * The Datums of an LMDB, in key order, as the paper's tuples of seven. The partitions' sizes differ
 * by one entry at most; where there are more partitions than entries, some are empty. The file must
 * not be written to meanwhile.
 *
 * @param entries
 *   of the whole database
 * @param plan
 *   its partitions
 */
final class LmdbRDD private[supply] (
    sc: SparkContext, location: LmdbLocation, val entries: Long,
    @transient private val plan: IndexedSeq[LmdbPartition])
    extends RDD[Datum.Tuple](sc, Nil) {

  override protected def getPartitions: Array[Partition] = plan.toArray[Partition]

  /** Entries of each partition. */
  def partitionEntries: IndexedSeq[Long] =
    partitions.toIndexedSeq.map(_.asInstanceOf[LmdbPartition].entries)

  /** The same elements, in the same partitions and order, as Spark keeps them best. */
  def batches: RDD[DatumBatch] = new LmdbBatchRDD(this)

  /** The partition's elements on LMDB's own pages, for this task. */
  def cursor(partition: Partition, context: TaskContext): LmdbCursor = {
    val path = location.local()
    val planned = partition.asInstanceOf[LmdbPartition]
    if (MappedWindow.bytes < Long.MaxValue) new LmdbCursor(path, planned)
    else {
      LmdbEnvironments.keepFor(context, path)
      new KeepingLmdbCursor(path, planned)
    }
  }

  override def compute(partition: Partition, context: TaskContext): Iterator[Datum.Tuple] = {
    val cursor = this.cursor(partition, context)
    context.addTaskCompletionListener[Unit](_ => cursor.close())
    new Iterator[Datum.Tuple] {
      private var ahead = cursor.next()
      override def hasNext: Boolean = ahead
      override def next(): Datum.Tuple = {
        val tuple = cursor.tuple
        ahead = cursor.next()
        if (!ahead) cursor.close()
        tuple
      }
    }
  }
}

/** Reads LMDB's pages itself: no tuple is made in between. */
private final class LmdbBatchRDD(lmdb: LmdbRDD) extends RDD[DatumBatch](lmdb) {
  override protected def getPartitions: Array[Partition] = lmdb.partitions

  override def compute(partition: Partition, context: TaskContext): Iterator[DatumBatch] = {
    val cursor = lmdb.cursor(partition, context)
    context.addTaskCompletionListener[Unit](_ => cursor.close())
    DatumBatch.of(cursor)
  }
}

object LmdbRDD {

  /**
   * @param path
   *   a directory with a data.mdb, or a data file itself; driver and executors see it there
   * @param partitions
   *   how many partitions, at least 1
   */
  def open(sc: SparkContext, path: String, partitions: Int): LmdbRDD = {
    require(partitions >= 1, s"an RDD has at least 1 partition, not $partitions")
    val file = LmdbFile.open(path)
    new LmdbRDD(sc, InPlace(file.path), file.entries, LmdbPartition.plan(file, partitions))
  }
}
