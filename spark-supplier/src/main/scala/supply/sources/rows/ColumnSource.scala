package supply.sources.rows

import scala.jdk.CollectionConverters._

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch

import supply.data.{ElementCursor, KeepingCursor, PartitionSizes}

/** The rows of a DataFrame that Spark computes as batches of columns. */
private[rows] final class ColumnSource(override val rdd: RDD[ColumnarBatch],
    columns: IndexedSeq[RowColumn], rowType: StructType, sizes: Option[PartitionSizes])
    extends DataFrameSource(columns, sizes) {
  override def openInOrder(partition: Partition, context: TaskContext): ElementCursor =
    new ColumnCursor(rdd.iterator(partition, context), columns.toArray)

  /** Row by row: what is kept are rows. */
  override def open(partition: Partition, context: TaskContext): KeepingCursor = {
    val toRow = UnsafeProjection.create(rowType)
    val batches = rdd.iterator(partition, context)
    new RowCursor(batches.flatMap(_.rowIterator.asScala).map(toRow), columns.toArray)
  }
}
