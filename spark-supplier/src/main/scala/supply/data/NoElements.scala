package supply.data

import org.apache.spark.{Partition, SparkContext, TaskContext}
import org.apache.spark.rdd.RDD

import supply.protocol.Schema

/** A source without elements, for the end of a stream. */
final class NoElements(sc: SparkContext) extends Source {
  override val rdd: RDD[Nothing] = sc.emptyRDD[Nothing]
  override def schema: Schema = Schema.Unknown
  override def mainColumn: Option[Int] = None
  override def open(partition: Partition, context: TaskContext): KeepingCursor =
    throw new NoSuchElementException
}
