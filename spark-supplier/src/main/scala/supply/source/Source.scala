package supply.source

import org.apache.spark.rdd.RDD
import org.apache.spark.{Partition, SparkContext, TaskContext}

import supply.protocol.Schema

/** A data set to supply: an RDD, and a way to read the elements of one of its partitions. */
// Java's Serializable, because Supplier must load under another Scala, too (BuiltFor); Scala 2.12
// has its own.
private[supply] trait Source extends java.io.Serializable {
  def rdd: RDD[_]
  def schema: Schema

  /** Index of the column that is written straight into the mapped file; None: all are small. */
  def mainColumn: Option[Int]

  /** The number of elements of each partition, if known in advance. */
  def partitionElements: Option[IndexedSeq[Long]] = None

  /** About how large each partition is, if known in advance. */
  def partitionSizes: Option[PartitionSizes] =
    partitionElements.map(PartitionSizes(_, PartitionSizes.Elements))

  /** Whether a partition has its elements in the same order each time, also after a shuffle. */
  def isOrdered: Boolean = false

  /** Says which data this is, also in another session, if that is known. */
  def identity: Option[String] = None

  /** About what all elements take, if known in advance. */
  def bytes: Option[Long] = None

  /** The elements of one partition. */
  def open(partition: Partition, context: TaskContext): ElementCursor

  /** The same in another order: see [[Draws]]. */
  def openShuffled(
      partition: Partition, context: TaskContext, buffer: Int, seed: Long): ElementCursor
}

/** A source whose cursors keep elements where they are. */
private[supply] trait KeepingSource extends Source {
  override def open(partition: Partition, context: TaskContext): KeepingCursor

  override def openShuffled(
      partition: Partition, context: TaskContext, buffer: Int, seed: Long): ElementCursor =
    new ShuffledCursor(open(partition, context), buffer, seed)
}

/** How large each partition is, in a unit as [[PartitionSizes.Elements]] or "bytes". */
private[supply] final case class PartitionSizes(sizes: IndexedSeq[Long], unit: String)

private[supply] object PartitionSizes {
  final val Elements = "elements"
}

/** A source without elements, for the end of a stream. */
private[supply] final class NoElements(sc: SparkContext) extends KeepingSource {
  override val rdd: RDD[Nothing] = sc.emptyRDD[Nothing]
  override def schema: Schema = Schema.Unknown
  override def mainColumn: Option[Int] = None
  override def open(partition: Partition, context: TaskContext): KeepingCursor =
    throw new NoSuchElementException
}
