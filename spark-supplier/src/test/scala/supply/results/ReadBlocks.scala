package supply.results

import java.nio.file.Path

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.{ArrayType, DataType, Decimal}
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarBatch}
import org.apache.spark.unsafe.types.UTF8String

import supply.rows.SparkTypes

/** All values of a block file, as Spark's rows give them, copied into comparable ones. */
private[results] object ReadBlocks {
  def rows(path: Path): Seq[Seq[Any]] = {
    val file = BlockFile.open(path, None)
    try {
      val types = file.header.schema.columns.map(SparkTypes.typeOf(_).get)
      var first = 0L
      (0 until file.header.blockCount).flatMap { i =>
        val block = file.block(i, first)
        first += block.elements
        val vectors = types.indices.map(column => block.vector(column): ColumnVector).toArray
        val batch = new ColumnarBatch(vectors, block.elements)
        (0 until block.elements).map(row => values(batch.getRow(row), types))
      }
    } finally file.close()
  }

  private def values(row: InternalRow, types: Seq[DataType]): Seq[Any] =
    types.zipWithIndex.map { case (dataType, i) =>
      if (row.isNullAt(i)) null else copy(row.get(i, dataType), dataType)
    }

  private def copy(value: Any, dataType: DataType): Any = (value, dataType) match {
    case (decimal: Decimal, _) => decimal.toJavaBigDecimal
    case (bytes: Array[Byte], _) => bytes.toSeq
    case (text: UTF8String, _) => text.toString
    case (array: ColumnarArray, ArrayType(number, _)) =>
      def numbers(of: ArrayData) = of.toObjectArray(number).toSeq.map(copy(_, number))
      // Spark copies the numbers all at once. As text, because NaN is not equal to itself.
      require(numbers(array).toString == numbers(array.copy()).toString)
      numbers(array)
    case _ => value
  }
}
