package supply.data

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.rdd.RDD

import supply.protocol.Schema

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
