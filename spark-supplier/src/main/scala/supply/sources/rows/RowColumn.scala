package supply.sources.rows

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._

import supply.core.{ConfigException, SourceException}
import supply.data.ElementWriter
import supply.protocol.{Column, Format}
import supply.types.SparkTypes

/** Writes the values of one column. A class, so that a call for each value is a virtual one. */
private[rows] abstract class RowValue extends Serializable {
  /** Writes value `i` of the row, which must not be null, as the value of column `i`. */
  def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit
}

/** One column of a DataFrame as a column of blocks; `width` is 0 if values differ in size. */
private[rows] final class RowColumn(val column: Column, val width: Int, val value: RowValue)
    extends Serializable {
  /** Whether a writer reserves space for its values, and they have one width. */
  def isReserved: Boolean = Format.of(column) match {
    case Format.Fixed(bytes) => bytes != Integer.BYTES || column.childFormat.nonEmpty
    case _ => false
  }

  /** Writes value `i` of the row, or null, as the value of column `i`. */
  def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit =
    if (column.nullable && row.isNullAt(i)) to.putNull(i) else value.write(row, i, to)
}

private[rows] object RowColumn {
  /** Writes one row. A loop of its own, because it runs for each row. */
  def write(columns: Array[RowColumn], row: SpecializedGetters, to: ElementWriter): Unit = {
    var i = 0
    while (i < columns.length) {
      columns(i).write(row, i, to)
      i += 1
    }
  }

  /**
   * Throws a ConfigException that names all columns that cannot be supplied. If there is none, asks
   * `listLength` for the length of the arrays of each column of arrays.
   */
  def of(schema: StructType, listLength: Int => Int): IndexedSeq[RowColumn] = {
    if (schema.isEmpty) throw new ConfigException("there is no column to supply")
    RefusedColumns.require(schema)
    schema.fields.toIndexedSeq.zipWithIndex.flatMap { case (field, i) => of(field, listLength(i)) }
  }

  /**
   * The same with names of their own, and each array as the bytes of its numbers, so that nobody
   * needs to know its length.
   */
  def withBytesOfLists(schema: StructType, names: Seq[String]): IndexedSeq[RowColumn] =
    of(schema, _ => 1).zip(schema.fields).zip(names).map { case ((made, field), name) =>
      field.dataType match {
        case ArrayType(_, containsNull) =>
          val bytes = new ListBytes(field.name, made.column.childFormat, made.width, containsNull)
          new RowColumn(Column(name, "z", field.nullable), 0, bytes)
        case _ => new RowColumn(made.column.copy(name = name), made.width, made.value)
      }
    }

  private def of(field: StructField, listLength: => Int): Option[RowColumn] = field.dataType match {
    case ArrayType(number, containsNull) =>
      SparkTypes.numberFormatOf(number).map { format =>
        val length = listLength
        val column = Column(field.name, s"+w:$length", field.nullable, format)
        new RowColumn(column, width(column),
          new ListValue(field.name, format, length, width(column), containsNull))
      }
    case single =>
      SparkTypes.formatOf(single).map { format =>
        val column = Column(field.name, format, field.nullable)
        new RowColumn(column, width(column), valueOf(single))
      }
  }

  /** Bytes of a value; 0: they differ. */
  private def width(column: Column): Int = Format.of(column) match {
    case Format.Bits => 1
    case Format.Fixed(bytes) => bytes
    case Format.Variable | Format.Views => 0
  }

  private def valueOf(dataType: DataType): RowValue = dataType match {
    case BooleanType => (row, i, to) => to.putBoolean(i, row.getBoolean(i))
    case ByteType => (row, i, to) => { to.reserve(i, 1).put(row.getByte(i)); () }
    case ShortType => (row, i, to) => { to.reserve(i, 2).putShort(row.getShort(i)); () }
    case IntegerType | DateType => (row, i, to) => to.putInt(i, row.getInt(i))
    case LongType | TimestampType | TimestampNTZType =>
      (row, i, to) => to.putLong(i, row.getLong(i))
    case FloatType =>
      (row, i, to) => to.putInt(i, java.lang.Float.floatToRawIntBits(row.getFloat(i)))
    case DoubleType =>
      (row, i, to) => to.putLong(i, java.lang.Double.doubleToRawLongBits(row.getDouble(i)))
    case decimal: DecimalType => new DecimalValue(decimal.precision, decimal.scale)
    case BinaryType => (row, i, to) => RowBytes.write(row, i, isText = false, to)
    case _ => (row, i, to) => RowBytes.write(row, i, isText = true, to)
  }
}

/** 128 bits, two's complement. */
private final class DecimalValue(precision: Int, scale: Int) extends RowValue {
  override def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit = {
    val space = to.reserve(i, 16)
    val value = row.getDecimal(i, precision, scale)
    if (precision <= Decimal.MAX_LONG_DIGITS) {
      space.putLong(value.toUnscaledLong).putLong(value.toUnscaledLong >> 63)
    } else {
      val unscaled = value.toJavaBigDecimal.unscaledValue
      space.putLong(unscaled.longValue).putLong(unscaled.shiftRight(64).longValue)
    }
    ()
  }
}

/** An array with the same number of numbers in each row. */
private final class ListValue(name: String, format: String, length: Int, width: Int,
    containsNull: Boolean) extends RowValue {
  override def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit = {
    val list = row.getArray(i)
    if (list.numElements() != length)
      throw new SourceException(
        s"column '$name' has an array of ${list.numElements()} numbers, and one of $length: they must all " +
          "have the same length")
    if (containsNull) RowBytes.refuseNull(list, name)
    RowBytes.write(list, format, to.reserve(i, width))
  }
}

/** The numbers of an array of any length. */
private final class ListBytes(name: String, format: String, numberBytes: Int,
    containsNull: Boolean) extends RowValue {
  override def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit = {
    val list = row.getArray(i)
    if (containsNull) RowBytes.refuseNull(list, name)
    RowBytes.write(list, format, to.reserve(i, Math.multiplyExact(list.numElements(), numberBytes)))
  }
}
