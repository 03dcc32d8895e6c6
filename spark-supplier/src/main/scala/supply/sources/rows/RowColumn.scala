package supply.sources.rows

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._

import supply.core.{ConfigException, SourceException}
import supply.data.ElementWriter
import supply.protocol.Column

/** Writes one column of a DataFrame as a column of blocks. */
private[rows] sealed abstract class RowColumn(val column: Column) extends Serializable {

  /** Bytes of a value; 0 if values differ in size. */
  def width: Int

  /** Writes value `i` of the row, which must not be null, as the value of column `i`. */
  def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit
}

private[rows] object RowColumn {

  private val Castable =
    "cast it to boolean, an integer, float, double, decimal, string, binary, date or timestamp, or to an array of " +
      "numbers that all have the same length"

  /**
   * @param listLength
   *   the length of the arrays of column `i`; called for columns of arrays, after all columns were
   *   accepted
   * @throws ConfigException
   *   if columns cannot be supplied; it names them all
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
    def column(format: String) = Column(field.name, format, field.nullable)
    field.dataType match {
      case BooleanType => Some(new BooleanValue(column("b")))
      case ByteType => Some(new ByteValue(column("c")))
      case ShortType => Some(new ShortValue(column("s")))
      case IntegerType => Some(new IntValue(column("i")))
      case DateType => Some(new IntValue(column("tdD")))
      case LongType => Some(new LongValue(column("l")))
      case TimestampType => Some(new LongValue(column("tsu:UTC")))
      case TimestampNTZType => Some(new LongValue(column("tsu:")))
      case FloatType => Some(new FloatValue(column("f")))
      case DoubleType => Some(new DoubleValue(column("g")))
      case _: StringType => Some(new BytesValue(column("u")))
      case BinaryType => Some(new BytesValue(column("z")))
      case decimal: DecimalType =>
        Some(new DecimalValue(column(s"d:${decimal.precision},${decimal.scale}"), decimal.precision,
            decimal.scale))
      case ArrayType(number: NumericType, containsNull) =>
        NumberFormats.get(number).map { case (format, bytes) =>
          val length = listLength
          new ListValue(column(s"+w:$length").copy(childFormat = format), length, bytes,
            containsNull)
        }
      case _ => None
    }
  }

  private val NumberFormats: Map[DataType, (String, Int)] =
    Map(ByteType -> ("c" -> 1), ShortType -> ("s" -> 2), IntegerType -> ("i" -> 4),
      LongType -> ("l" -> 8), FloatType -> ("f" -> 4),
      DoubleType -> ("g" -> 8))
}

private final class BooleanValue(column: Column) extends RowColumn(column) {
  override def width: Int = 1
  override def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit =
    to.putBoolean(i, row.getBoolean(i))
}

private final class ByteValue(column: Column) extends RowColumn(column) {
  override def width: Int = 1
  override def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit = {
    to.reserve(i, 1).put(row.getByte(i)); ()
  }
}

private final class ShortValue(column: Column) extends RowColumn(column) {
  override def width: Int = 2
  override def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit = {
    to.reserve(i, 2).putShort(row.getShort(i)); ()
  }
}

private final class IntValue(column: Column) extends RowColumn(column) {
  override def width: Int = 4
  override def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit =
    to.putInt(i, row.getInt(i))
}

private final class LongValue(column: Column) extends RowColumn(column) {
  override def width: Int = 8
  override def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit =
    to.putLong(i, row.getLong(i))
}

private final class FloatValue(column: Column) extends RowColumn(column) {
  override def width: Int = 4
  override def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit =
    to.putInt(i, java.lang.Float.floatToRawIntBits(row.getFloat(i)))
}

private final class DoubleValue(column: Column) extends RowColumn(column) {
  override def width: Int = 8
  override def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit =
    to.putLong(i, java.lang.Double.doubleToRawLongBits(row.getDouble(i)))
}

/** Text or bytes, of any length. */
private final class BytesValue(column: Column) extends RowColumn(column) {
  override def width: Int = 0
  override def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit =
    RowBytes.write(row, i, column.format == "u", to)
}

/** 128 bits, two's complement. */
private final class DecimalValue(
    column: Column, precision: Int, scale: Int) extends RowColumn(column) {
  override def width: Int = 16

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
private final class ListValue(
    column: Column, length: Int, bytes: Int, containsNull: Boolean) extends RowColumn(column) {
  override val width: Int = Math.multiplyExact(length, bytes)

  override def write(row: SpecializedGetters, i: Int, to: ElementWriter): Unit = {
    val list = row.getArray(i)
    if (list.numElements() != length) {
      throw new SourceException(
        s"column '${column.name}' has an array of ${list.numElements()} numbers, and one of $length: they must all " +
          "have the same length")
    }
    if (containsNull && RowBytes.hasNull(list)) {
      throw new SourceException(
        s"column '${column.name}' has an array with a null in it: fill it, or drop the row")
    }
    RowBytes.write(list, column.childFormat, to.reserve(i, width))
  }
}
