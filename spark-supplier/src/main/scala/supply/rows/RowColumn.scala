package supply.rows

import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN

import org.apache.spark.sql.catalyst.expressions.{SpecializedGetters, UnsafeArrayData, UnsafeRow}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform

import supply.core.{ConfigException, SourceException}
import supply.protocol.{Column, Format}
import supply.source.ElementWriter

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

/** Copies values from Spark's memory into a block, in the machine's byte order. */
private[rows] object RowBytes {
  /** Copies text or bytes. */
  def write(row: SpecializedGetters, i: Int, isText: Boolean, to: ElementWriter): Unit = row match {
    case unsafe: UnsafeRow =>
      val place = unsafe.getLong(i)
      val bytes = place.toInt
      copy(unsafe.getBaseObject, unsafe.getBaseOffset + (place >>> 32), bytes, to.reserve(i, bytes))
    case _ =>
      val bytes = if (isText) row.getUTF8String(i).getBytes else row.getBinary(i)
      to.reserve(i, bytes.length).put(bytes)
      ()
  }

  /** Copies the numbers of a list, none of which may be null. */
  def write(list: ArrayData, format: String, to: ByteBuffer): Unit = list match {
    case unsafe: UnsafeArrayData =>
      val header = UnsafeArrayData.calculateHeaderPortionInBytes(unsafe.numElements())
      copy(unsafe.getBaseObject, unsafe.getBaseOffset + header, to.remaining(), to)
    case _ =>
      val space = to.slice().order(LITTLE_ENDIAN)
      format match {
        case "c" => space.put(list.toByteArray())
        case "s" => space.asShortBuffer().put(list.toShortArray())
        case "i" => space.asIntBuffer().put(list.toIntArray())
        case "l" => space.asLongBuffer().put(list.toLongArray())
        case "f" => space.asFloatBuffer().put(list.toFloatArray())
        case "g" => space.asDoubleBuffer().put(list.toDoubleArray())
      }
      ()
  }

  /** Throws a SourceException if there is a null in a list of the column `name`. */
  def refuseNull(list: ArrayData, name: String): Unit = if (hasNull(list))
    throw new SourceException(
      s"column '$name' has an array with a null in it: fill it, or drop the row")

  private def hasNull(list: ArrayData): Boolean = list match {
    case unsafe: UnsafeArrayData =>
      // The null bits fill whole words between the number of values and the values.
      val end = UnsafeArrayData.calculateHeaderPortionInBytes(unsafe.numElements())
      var at = java.lang.Long.BYTES
      while (at < end && Platform.getLong(unsafe.getBaseObject, unsafe.getBaseOffset + at) == 0)
        at += java.lang.Long.BYTES
      at < end
    case _ => (0 until list.numElements()).exists(list.isNullAt)
  }

  private def copy(base: AnyRef, offset: Long, bytes: Int, to: ByteBuffer): Unit = base match {
    case array: Array[Byte] =>
      to.put(array, (offset - Platform.BYTE_ARRAY_OFFSET).toInt, bytes)
      ()
    case _ =>
      val copied = new Array[Byte](bytes)
      Platform.copyMemory(base, offset, copied, Platform.BYTE_ARRAY_OFFSET.toLong, bytes.toLong)
      to.put(copied)
      ()
  }
}

/** Columns that cannot be supplied: what they are, as Spark names it, and what to write instead. */
private[supply] object RefusedColumns {
  /** Throws a ConfigException that names all of them. */
  def require(schema: StructType): Unit = {
    val refused = schema.fields.filterNot(field => isSupplied(field.dataType))
    if (refused.nonEmpty) throw new ConfigException(
      refused.map(field =>
        s"'${field.name}' is ${field.dataType.simpleString}, use ${instead(field)}")
        .mkString("a column cannot be supplied as it is (", "; ", ")"))
  }

  private def isSupplied(dataType: DataType): Boolean = dataType match {
    case ArrayType(number, _) => SparkTypes.numberFormatOf(number).isDefined
    case single => SparkTypes.formatOf(single).isDefined
  }

  private def instead(field: StructField): String = {
    val column = quoted(field.name)
    field.dataType match {
      case ArrayType(ArrayType(_, _), _) => s"flatten($column)"
      case ArrayType(own: UserDefinedType[_], _) if own.typeName == "vector" =>
        s"one column for each vector: ${ofVector(s"${field.name}[0]")}"
      case ArrayType(StructType(fields), _) if fields.nonEmpty =>
        s"transform($column, x -> x.${quoted(fields.head.name)}), or explode it into rows"
      case ArrayType(_: StringType | BinaryType, _) =>
        s"concat_ws(',', $column), or explode it into rows"
      case ArrayType(BooleanType, _) => s"cast(cast($column as array<int>) as array<double>)"
      case ArrayType(_, _) => s"cast($column as array<double>)"
      case MapType(key, _, _) => s"$column[${keyOf(key)}] for each key that you need"
      case StructType(fields) if fields.nonEmpty =>
        s"$column.${quoted(fields.head.name)}, or $column.* for all fields"
      case own: UserDefinedType[_] if own.typeName == "vector" => ofVector(field.name)
      case _: UserDefinedType[_] => "a UDF that makes an array of numbers of it"
      case other if other.typeName == "variant" =>
        s"variant_get($column, '$$.NAME', 'double') for each value that you need"
      case NullType => s"cast($column as double)"
      case _ => s"cast($column as string)"
    }
  }

  /** For vectors of spark.ml and of spark.mllib. */
  private def ofVector(column: String): String =
    s"""pyspark.ml.functions.vector_to_array("$column") (in Scala org.apache.spark.ml.functions)"""

  private def keyOf(key: DataType): String = key match {
    case _: StringType => "'KEY'"
    case _ => "KEY"
  }

  private def quoted(name: String): String =
    if (name.matches("[A-Za-z_][A-Za-z_0-9]*")) name else "`" + name.replace("`", "``") + "`"
}
