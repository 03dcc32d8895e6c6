package supply.results

import java.nio.file.Path

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.util.{ArrayData, MapData}
import org.apache.spark.sql.types.{ArrayType, DataType, Decimal, MapType, NumericType, StructType}
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
    case (array: ColumnarArray, ArrayType(item, _)) =>
      def values(of: ArrayData) = of.toObjectArray(item).toSeq.map(copy(_, item))
      val found = values(array)
      // Spark copies numbers all at once, if none is null. As text, because NaN is not equal to itself.
      if (item.isInstanceOf[NumericType] && !found.contains(null))
        require(found.toString == values(array.copy()).toString)
      found
    case (struct: InternalRow, StructType(fields)) => values(struct, fields.toSeq.map(_.dataType))
    case (map: MapData, MapType(key, of, _)) => copy(map.keyArray(), ArrayType(key))
        .asInstanceOf[Seq[Any]].zip(copy(map.valueArray(), ArrayType(of)).asInstanceOf[Seq[Any]])
        .toMap
    case _ => value
  }
}
