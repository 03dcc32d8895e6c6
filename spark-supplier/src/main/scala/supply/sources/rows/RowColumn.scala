package supply.sources.rows

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._

import supply.core.{ConfigException, SourceException}
import supply.data.ElementWriter
import supply.protocol.Column

/** Writes the values of one column. A class, so that a call for each value is a virtual one. */
private[rows] abstract class RowValue extends Serializable {
  /** Writes value `i` of the row, which must not be null, as the value of column `i`. */
  def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit
}

/** One column of a DataFrame as a column of blocks; `width` is 0 if values differ in size. */
private[rows] final class RowColumn(val column: Column, val width: Int, val value: RowValue)
    extends Serializable

private[rows] object RowColumn {
  private val Castable =
    "cast it to boolean, an integer, float, double, decimal, string, binary, date or timestamp, or to an array of " +
      "numbers that all have the same length"

  /**
   * Throws a ConfigException that names all columns that cannot be supplied. If there is none, asks
   * `listLength` for the length of the arrays of each column of arrays.
   */
  def of(schema: StructType, listLength: Int => Int): IndexedSeq[RowColumn] = {
    val refused = schema.fields.filter(field => of(field, 1).isEmpty).map(field =>
      s"'${field.name}' is ${field.dataType.catalogString}")
    if (schema.isEmpty) throw new ConfigException("there is no column to supply")
    if (refused.nonEmpty) throw new ConfigException(
      s"a column cannot be supplied as it is (${refused.mkString(", ")}): $Castable")
    schema.fields.toIndexedSeq.zipWithIndex.flatMap { case (field, i) => of(field, listLength(i)) }
  }

  private def of(field: StructField, listLength: => Int): Option[RowColumn] = {
    def column(format: String, width: Int, childFormat: String = "")(value: RowValue) =
      Some(new RowColumn(Column(field.name, format, field.nullable, childFormat), width, value))
    def int(format: String) = column(format, 4)((row, i, to) => to.putInt(i, row.getInt(i)))
    def long(format: String) = column(format, 8)((row, i, to) => to.putLong(i, row.getLong(i)))
    def bytes(format: String, isText: Boolean) =
      column(format, 0)((row, i, to) => RowBytes.write(row, i, isText, to))
    field.dataType match {
      case BooleanType => column("b", 1)((row, i, to) => to.putBoolean(i, row.getBoolean(i)))
      case ByteType =>
        column("c", 1) { (row, i, to) => to.reserve(i, 1).put(row.getByte(i)); () }
      case ShortType =>
        column("s", 2) { (row, i, to) => to.reserve(i, 2).putShort(row.getShort(i)); () }
      case IntegerType => int("i")
      case DateType => int("tdD")
      case LongType => long("l")
      case TimestampType => long("tsu:UTC")
      case TimestampNTZType => long("tsu:")
      case FloatType => column("f", 4)((row, i, to) =>
          to.putInt(i, java.lang.Float.floatToRawIntBits(row.getFloat(i))))
      case DoubleType => column("g", 8)((row, i, to) =>
          to.putLong(i, java.lang.Double.doubleToRawLongBits(row.getDouble(i))))
      case _: StringType => bytes("u", isText = true)
      case BinaryType => bytes("z", isText = false)
      case decimal: DecimalType =>
        column(s"d:${decimal.precision},${decimal.scale}", 16)(
          new DecimalValue(decimal.precision, decimal.scale))
      case ArrayType(number: NumericType, containsNull) =>
        NumberFormats.get(number).flatMap { case (format, numberBytes) =>
          val length = listLength
          val width = Math.multiplyExact(length, numberBytes)
          column(s"+w:$length", width, format)(
            new ListValue(field.name, format, length, width, containsNull))
        }
      case _ => None
    }
  }

  private val NumberFormats: Map[DataType, (String, Int)] =
    Map(ByteType -> ("c" -> 1), ShortType -> ("s" -> 2), IntegerType -> ("i" -> 4),
      LongType -> ("l" -> 8), FloatType -> ("f" -> 4),
      DoubleType -> ("g" -> 8))
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
    if (containsNull && RowBytes.hasNull(list))
      throw new SourceException(
        s"column '$name' has an array with a null in it: fill it, or drop the row")
    RowBytes.write(list, format, to.reserve(i, width))
  }
}
