package supply.results

import java.math.{BigDecimal, BigInteger}

import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarMap}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

import supply.core.ContractException
import supply.protocol.FormatTable
import supply.rows.SparkTypes

/**
 * One column of a block as a vector of Spark, over the mapped memory. Spark asks a vector only for
 * rows of its batch and in the vector's type. Closing it does nothing: the file stays mapped, as
 * Spark may keep strings that point into it ([[OpenResults]]).
 */
private[supply] abstract class MappedColumn private[results] (in: ColumnBuffers, dataType: DataType)
    extends ColumnVector(dataType) {
  private[results] val elements = in.elements
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
      case ArrayType(number, _) if in.children.isEmpty =>
        new ListColumn(in, dataType, NumberColumn(in, in.column.childFormat, number),
          SparkTypes.listLength(in.column).get)
      case _: ArrayType | _: MapType | _: StructType =>
        new ParentColumn(in, dataType, in.children.map(MappedColumn(_)))
      case _ => NumberColumn(in, in.column.format, dataType)
    }
  }
}

/**
 * Lists, maps and structs: their values are those of other vectors. Each access checks the two offsets
 * that it reads.
 */
private final class ParentColumn(
    in: ColumnBuffers, dataType: DataType, children: IndexedSeq[MappedColumn])
    extends MappedColumn(in, dataType) {
  private val length = SparkTypes.listLength(in.column).getOrElse(0)
  private val within = in.children.head.elements

  override def getChild(ordinal: Int): ColumnVector = dataType match {
    case _: MapType => children.head.getChild(ordinal)
    case _ => children(ordinal)
  }

  override def getArray(row: Int): ColumnarArray =
    if (length > 0) new ColumnarArray(children.head, row * length, length)
    else {
      val start = offset(row)
      new ColumnarArray(children.head, start, lengthFrom(row, start))
    }

  override def getMap(row: Int): ColumnarMap = {
    val start = offset(row)
    new ColumnarMap(getChild(0), getChild(1), start, lengthFrom(row, start))
  }

  private def offset(row: Int): Int = memory.int(in.offsets + 4L * row)

  private def lengthFrom(row: Int, start: Int): Int = {
    val end = offset(row + 1)
    if (start < 0 || end < start || end > within)
      refuseValue(row,
        s"its offsets are $start and $end: they must never decrease, nor pass the $within elements within it")
    end - start
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

/** Values of a fixed number of bytes: the column's own, or the numbers of its lists. */
private[results] object NumberColumn {
  /** `format`: of the values; a list's numbers have no nulls of their own. */
  def apply(in: ColumnBuffers, format: String, dataType: DataType): MappedColumn = {
    val values = if (format == in.column.format) in else withoutNulls(in)
    (format, dataType) match {
      case ("c", _) => new ByteColumn(values, dataType)
      case ("C", _) => new UnsignedByteColumn(values, dataType)
      case ("s", _) => new ShortColumn(values, dataType)
      case ("S", _) => new UnsignedShortColumn(values, dataType)
      case ("I", _) => new UnsignedIntColumn(values, dataType)
      case ("e", _) => new HalfColumn(values, dataType)
      case ("f", _) => new FloatColumn(values, dataType)
      case ("g", _) => new DoubleColumn(values, dataType)
      case ("L", decimal: DecimalType) => new UnsignedLongColumn(values, decimal)
      case (_, decimal: DecimalType) => new DecimalColumn(values, decimal)
      case _ if FormatTable.bytes.get(format).contains(4) => new IntColumn(values, dataType)
      case _ => new LongColumn(values, dataType)
    }
  }

  private def withoutNulls(in: ColumnBuffers) =
    new ColumnBuffers(in.toWhere, in.memory, in.column, in.elements,
      0, 0, in.offsets, in.data, in.dataBytes, in.children)
}

private final class ByteColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  override def getByte(row: Int): Byte = memory.byte(data + row)

  override def getBytes(row: Int, count: Int): Array[Byte] =
    memory.copy(data + row, new Array[Byte](count), Platform.BYTE_ARRAY_OFFSET, count.toLong)
}

private final class UnsignedByteColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  override def getShort(row: Int): Short = (memory.byte(data + row) & 0xff).toShort
}

private final class ShortColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  override def getShort(row: Int): Short = memory.short(data + 2L * row)
}

private final class UnsignedShortColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  override def getInt(row: Int): Int = memory.short(data + 2L * row) & 0xffff
}

private final class IntColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  override def getInt(row: Int): Int = memory.int(data + 4L * row)

  override def getInts(row: Int, count: Int): Array[Int] =
    memory.copy(data + 4L * row, new Array[Int](count), Platform.INT_ARRAY_OFFSET, 4L * count)
}

private final class UnsignedIntColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  override def getLong(row: Int): Long = memory.int(data + 4L * row) & 0xffffffffL
}

/** Integers and instants. */
private final class LongColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  override def getLong(row: Int): Long = memory.long(data + 8L * row)

  override def getLongs(row: Int, count: Int): Array[Long] =
    memory.copy(data + 8L * row, new Array[Long](count), Platform.LONG_ARRAY_OFFSET, 8L * count)
}

private final class FloatColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  override def getFloat(row: Int): Float = memory.float(data + 4L * row)

  override def getFloats(row: Int, count: Int): Array[Float] =
    memory.copy(data + 4L * row, new Array[Float](count), Platform.FLOAT_ARRAY_OFFSET, 4L * count)
}

/** Numbers of half precision (IEEE 754 binary16), read as floats. */
private final class HalfColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  override def getFloat(row: Int): Float = {
    val half = memory.short(data + 2L * row) & 0xffff
    val (exponent, fraction) = (half >> 10 & 0x1f, half & 0x3ff)
    val magnitude = exponent match {
      case 0 => Math.scalb(fraction.toFloat, -24)
      case 0x1f => if (fraction == 0) Float.PositiveInfinity else Float.NaN
      case _ => Math.scalb((0x400 | fraction).toFloat, exponent - 25)
    }
    if ((half & 0x8000) != 0) -magnitude else magnitude
  }
}

private final class DoubleColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  override def getDouble(row: Int): Double = memory.double(data + 8L * row)

  override def getDoubles(row: Int, count: Int): Array[Double] =
    memory.copy(data + 8L * row, new Array[Double](count), Platform.DOUBLE_ARRAY_OFFSET, 8L * count)
}

/** 128 bits, two's complement. */
private final class DecimalColumn(in: ColumnBuffers, decimal: DecimalType)
    extends MappedColumn(in, decimal) {
  private val largest = if (decimal.precision > Decimal.MAX_LONG_DIGITS) Long.MaxValue
  else BigInteger.TEN.pow(decimal.precision).longValue - 1

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal =
    if (isNullAt(row)) null
    else {
      val low = memory.long(data + 16L * row)
      val high = memory.long(data + 16L * row + 8)
      if (decimal.precision <= Decimal.MAX_LONG_DIGITS) {
        if (high != low >> 63 || low > largest || low < -largest) refuseDigits(row)
        Decimal.createUnsafe(low, decimal.precision, decimal.scale)
      } else {
        val unscaled = BigInteger.valueOf(high).shiftLeft(64).add(UnsignedLong.toBigInteger(low))
        val value = new BigDecimal(unscaled, decimal.scale)
        if (value.precision > decimal.precision) refuseDigits(row)
        Decimal(value, decimal.precision, decimal.scale)
      }
    }

  private def refuseDigits(row: Int): Nothing =
    refuseValue(row, s"the value has more than ${decimal.precision} digits")
}

/** 64 bits without a sign, which only a decimal of Spark can hold. */
private final class UnsignedLongColumn(in: ColumnBuffers, decimal: DecimalType)
    extends MappedColumn(in, decimal) {
  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal =
    if (isNullAt(row)) null
    else Decimal(new BigDecimal(UnsignedLong.toBigInteger(memory.long(data + 8L * row))),
      decimal.precision, decimal.scale)
}

private object UnsignedLong {
  private val TwoTo64 = BigInteger.ONE.shiftLeft(64)

  def toBigInteger(bits: Long): BigInteger = {
    val signed = BigInteger.valueOf(bits)
    if (bits < 0) signed.add(TwoTo64) else signed
  }
}

/** Text or bytes of any length. Each access checks the two offsets that it reads. */
private final class BytesColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  private val offsets = in.offsets
  private val dataBytes = in.dataBytes

  /** Points into the file. Of a text that ends inside a character it is a copy, with bytes after it: Spark reads on. */
  override def getUTF8String(row: Int): UTF8String =
    if (isNullAt(row)) null
    else {
      val start = offset(row)
      val length = lengthFrom(row, start)
      if (endsInsideCharacter(data + start, length))
        UTF8String.fromBytes(copy(start, length, length + 3), 0, length)
      else UTF8String.fromAddress(null, data + start, length)
    }

  override def getBinary(row: Int): Array[Byte] =
    if (isNullAt(row)) null
    else {
      val start = offset(row)
      val length = lengthFrom(row, start)
      copy(start, length, length)
    }

  private def offset(row: Int): Int = memory.int(offsets + 4L * row)

  private def lengthFrom(row: Int, start: Int): Int = {
    val end = offset(row + 1)
    if (start < 0 || end < start || end > dataBytes)
      refuseValue(row,
        s"its offsets are $start and $end: they must never decrease, nor pass data_bytes, $dataBytes")
    end - start
  }

  private def copy(start: Int, length: Int, space: Int): Array[Byte] =
    memory.copy(data + start, new Array[Byte](space), Platform.BYTE_ARRAY_OFFSET, length.toLong)

  /** Spark's functions for text take the length of a character from its first byte. */
  private def endsInsideCharacter(text: Long, length: Int): Boolean = {
    def begins(back: Int, longer: Int) =
      length >= back && (memory.byte(text + length - back) & 0xff) >= longer
    begins(1, 0xc0) || begins(2, 0xe0) || begins(3, 0xf0)
  }
}
