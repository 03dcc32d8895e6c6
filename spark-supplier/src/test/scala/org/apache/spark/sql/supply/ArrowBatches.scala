package org.apache.spark.sql.supply

import scala.jdk.CollectionConverters._

import org.apache.arrow.vector.{BitVectorHelper, VectorSchemaRoot}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.arrow.ArrowWriter
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.ArrowUtils
import org.apache.spark.sql.vectorized.{ArrowColumnVector, ColumnVector, ColumnarBatch}

/** Batches of columns in Arrow's memory, which is freed in the end. */
object ArrowBatches {
  /** Nullable values become null in the rows that are `hidden`, and what lies within them stays. */
  def use[A](rows: Iterator[Seq[InternalRow]], schema: StructType,
      hidden: Int => Boolean = _ => false)(body: Iterator[ColumnarBatch] => A): A = {
    val fields = ArrowUtils.toArrowSchema(schema, "UTC", true, false)
    val allocator = ArrowUtils.rootAllocator.newChildAllocator("test", 0, Long.MaxValue)
    var roots = Vector.empty[VectorSchemaRoot]
    try body(rows.map { some =>
        val root = VectorSchemaRoot.create(fields, allocator)
        roots :+= root
        val writer = ArrowWriter.create(root)
        some.foreach(writer.write)
        writer.finish()
        for ((vector, field) <- root.getFieldVectors.asScala.zip(schema) if field.nullable;
          row <- some.indices if hidden(row))
          BitVectorHelper.unsetBit(vector.getValidityBuffer, row)
        val vectors = root.getFieldVectors.asScala.map(new ArrowColumnVector(_): ColumnVector)
        new ColumnarBatch(vectors.toArray, some.size)
      })
    finally {
      roots.foreach(_.close())
      allocator.close()
    }
  }
}
