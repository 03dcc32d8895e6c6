package supply.results

import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarMap}
import org.apache.spark.unsafe.types.UTF8String

import supply.core.ContractException
import supply.types.SparkTypes

/**
 * One column of a block as a vector of Spark, over the mapped memory. Spark asks a vector only for
 * rows of its batch and in the vector's type. Closing it does nothing: the file stays mapped, as
 * Spark may keep strings that point into it ([[OpenResults]]).
 */
abstract class MappedColumn private[results] (in: ColumnBuffers, dataType: DataType)
    extends ColumnVector(dataType) {
  private[results] val memory = in.memory
  private[results] val data = in.data
  private val validity = if (in.column.nullable) in.validity else 0L

  override def close(): Unit = ()

  override def hasNull: Boolean = numNulls > 0

  override def numNulls: Int = if (validity == 0) 0 else in.nullCount

  override def isNullAt(row: Int): Boolean = validity != 0 && !memory.bit(validity, row)

  override def getBoolean(row: Int): Boolean = refuse("boolean")

  override def getByte(row: Int): Byte = refuse("tinyint")

  override def getShort(row: Int): Short = refuse("smallint")

  override def getInt(row: Int): Int = refuse("int")

  override def getLong(row: Int): Long = refuse("bigint")

  override def getFloat(row: Int): Float = refuse("float")

  override def getDouble(row: Int): Double = refuse("double")

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal = refuse("decimal")

  override def getUTF8String(row: Int): UTF8String = refuse("string")

  override def getBinary(row: Int): Array[Byte] = refuse("binary")

  override def getArray(row: Int): ColumnarArray = refuse("array")

  override def getMap(row: Int): ColumnarMap = refuse("map")

  override def getChild(ordinal: Int): ColumnVector = refuse("struct")

  private def refuse(asked: String): Nothing = throw new UnsupportedOperationException(
    s"${in.where}: Spark asked for a value of type $asked in a column of type ${dataType.catalogString}")

  /** Refuses the value of a row. */
  private[results] def refuseValue(row: Int, what: String): Nothing =
    throw new ContractException(s"${in.where}, element $row of the block: $what")
}

private[results] object MappedColumn {
  def apply(in: ColumnBuffers): MappedColumn = {
    val dataType = SparkTypes.typeOf(in.column).get
    dataType match {
      case BooleanType => new BooleanColumn(in)
      case StringType | BinaryType => new BytesColumn(in, dataType)
      case ArrayType(number, _) =>
        new ListColumn(in, dataType, NumberColumn(in, in.column.childFormat, number),
          SparkTypes.listLength(in.column).get)
      case _ => NumberColumn(in, in.column.format, dataType)
    }
  }
}

private final class BooleanColumn(in: ColumnBuffers) extends MappedColumn(in, BooleanType) {
  override def getBoolean(row: Int): Boolean = memory.bit(data, row)
}

/** Arrays of N numbers each, none of which is null. */
private final class ListColumn(in: ColumnBuffers, dataType: DataType, numbers: ColumnVector,
    length: Int) extends MappedColumn(in, dataType) {
  override def getArray(row: Int): ColumnarArray = new ColumnarArray(numbers, row * length, length)

  override def getChild(ordinal: Int): ColumnVector = numbers
}
