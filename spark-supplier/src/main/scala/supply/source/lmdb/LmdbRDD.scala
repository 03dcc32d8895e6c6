package supply.source.lmdb

import org.apache.spark.{Partition, SparkContext, TaskContext}
import org.apache.spark.rdd.RDD

import supply.source.{Datum, DatumBatch}

/** `entries` entries of an LMDB, in key order, from `firstKey` on. */
final case class LmdbPartition(index: Int, firstKey: Array[Byte], entries: Long) extends Partition

/**
 * The Datums of an LMDB, in key order, as the paper's tuples of seven. The partitions' sizes differ by one entry at
 * most; where there are more partitions than entries, some are empty. The file must be seen by driver and executors at the
 * same path, and must not be written to meanwhile.
 */
final class LmdbRDD private (sc: SparkContext, file: LmdbFile, partitionCount: Int) extends RDD[Datum.Tuple](sc, Nil) {
  private val path = file.path

  /** Entries of the whole database. */
  val entries: Long = file.entries

  /** Walks the keys, once: values are not read. */
  override protected def getPartitions: Array[Partition] = {
    val firsts = (0 to partitionCount).map(i => LmdbRDD.split(entries, partitionCount, i))
    val walk = new LmdbWalk(path)
    try {
      var position = -1L
      (0 until partitionCount).map { i =>
        val size = firsts(i + 1) - firsts(i)
        if (size > 0) while (position < firsts(i) && walk.next()) position += 1
        LmdbPartition(i, if (size > 0) walk.keyBytes else Array.emptyByteArray, size): Partition
      }.toArray
    } finally walk.close()
  }

  /** The same elements, in the same partitions and order, as Spark keeps them best. */
  def batches: RDD[DatumBatch] = new LmdbBatchRDD(this)

  /** The partition's elements on LMDB's own pages, for this task. */
  def cursor(partition: Partition, context: TaskContext): LmdbCursor = {
    if (MappedWindow.bytes == Long.MaxValue) LmdbEnvironments.keepFor(context, path)
    new LmdbCursor(path, partition.asInstanceOf[LmdbPartition])
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
   * @param path       a directory with a data.mdb, or a data file itself
   * @param partitions how many partitions, at least 1
   */
  def open(sc: SparkContext, path: String, partitions: Int): LmdbRDD = {
    require(partitions >= 1, s"an RDD has at least 1 partition, not $partitions")
    new LmdbRDD(sc, LmdbFile.open(path), partitions)
  }

  /** Where part `i` of `parts` begins; without overflow for any number of entries. */
  private def split(entries: Long, parts: Int, i: Int): Long =
    entries / parts * i + entries % parts * i / parts
}
