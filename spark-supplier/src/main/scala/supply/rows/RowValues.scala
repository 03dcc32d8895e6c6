package supply.rows

import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN
import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.catalyst.expressions.{SpecializedGetters, UnsafeArrayData, UnsafeRow}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform

import supply.core.{Buffers, SourceException}
import supply.source.ElementWriter

/** Values that have no others within them. */
private[rows] object RowValues {
  /** Of a column with this format. */
  def of(dataType: DataType, format: String): RowValue = (dataType, format) match {
    case (decimal: DecimalType, _) => new DecimalValue(decimal.precision, decimal.scale)
    case (variant, _) if SparkTypes.isVariant(variant) => new VariantValue(variant)
    case (FloatType, "e") => (row, i, column, to) => {
        to.reserve(column, 2).putShort(HalfFloat.bits(row.getFloat(i).toDouble)); ()
      }
    case (_, "e") => (row, i, column, to) => {
        to.reserve(column, 2).putShort(HalfFloat.bits(row.getDouble(i))); ()
      }
    case (_, "b") => (row, i, column, to) => to.putBoolean(column, row.getBoolean(i))
    case (_, "c") => (row, i, column, to) => { to.reserve(column, 1).put(row.getByte(i)); () }
    case (_, "s") => (row, i, column, to) => { to.reserve(column, 2).putShort(row.getShort(i)); () }
    case (_, "i" | "tdD" | "tiM") => (row, i, column, to) => to.putInt(column, row.getInt(i))
    case (_, "f") => (row, i, column, to) =>
        to.putInt(column, java.lang.Float.floatToRawIntBits(row.getFloat(i)))
    case (_, "g") => (row, i, column, to) =>
        to.putLong(column, java.lang.Double.doubleToRawLongBits(row.getDouble(i)))
    case (_, "z") => (row, i, column, to) => RowBytes.write(row, i, column, isText = false, to)
    case (_, "u") => (row, i, column, to) => RowBytes.write(row, i, column, isText = true, to)
    case _ => (row, i, column, to) => to.putLong(column, row.getLong(i))
  }
}

/** 128 bits, two's complement. */
private final class DecimalValue(precision: Int, scale: Int) extends RowValue {
  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit = {
    val space = to.reserve(column, 16)
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

/** A variant as JSON, with times in UTC, as all times of blocks. */
private[rows] final class VariantValue(variant: DataType) extends RowValue {
  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit = {
    val json = row.get(i, variant).toString.getBytes(UTF_8)
    to.reserve(column, json.length).put(json)
    ()
  }
}

/** An array with the same number of numbers in each row. */
private[rows] final class ListValue(name: String, number: DataType, format: String,
    val length: Int, width: Int, containsNull: Boolean) extends RowValue {
  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit = {
    val list = row.getArray(i)
    if (list.numElements() != length)
      Shape.refuse(name, s"an array of ${list.numElements()} numbers", length.toString)
    if (containsNull && RowBytes.hasNull(list))
      throw new SourceException(
        s"column '$name' has an array with a null in it, and none among the first rows: let its lists vary " +
          s"(the option lists, in Python ragged={'$name': 'jagged'}), fill it, or drop the row")
    RowBytes.write(list, number, format, to.reserve(column, width))
  }
}

/** The numbers of an array of any length. */
private final class ListBytes(name: String, number: DataType, format: String,
    numberBytes: Int, containsNull: Boolean) extends RowValue {
  override def write(row: SpecializedGetters, i: Int, column: Int, to: ElementWriter): Unit = {
    val list = row.getArray(i)
    if (containsNull && RowBytes.hasNull(list))
      throw new SourceException(
        s"column '$name' has an array with a null in it: fill it, or drop the row")
    RowBytes.write(list, number, format,
      to.reserve(column, Math.multiplyExact(list.numElements(), numberBytes)))
  }
}

/** Copies values from Spark's memory into a block, in the machine's byte order. */
private[rows] object RowBytes {
  /** Copies text or bytes. */
  def write(row: SpecializedGetters, i: Int, column: Int, isText: Boolean,
      to: ElementWriter): Unit = row match {
    case unsafe: UnsafeRow =>
      val place = unsafe.getLong(i)
      val bytes = place.toInt
      Buffers.put(unsafe.getBaseObject, unsafe.getBaseOffset + (place >>> 32), bytes,
        to.reserve(column, bytes))
    case _ =>
      val bytes = if (isText) row.getUTF8String(i).getBytes else row.getBinary(i)
      to.reserve(column, bytes.length).put(bytes)
      ()
  }

  /** Copies the numbers of a list, none of which may be null. They may have half precision in a block. */
  def write(list: ArrayData, number: DataType, format: String, to: ByteBuffer): Unit = list match {
    case _ if format == "e" =>
      var i = 0
      while (i < list.numElements()) {
        to.putShort(HalfFloat.bits(
            if (number == FloatType) list.getFloat(i).toDouble else list.getDouble(i)))
        i += 1
      }
    case unsafe: UnsafeArrayData =>
      val header = UnsafeArrayData.calculateHeaderPortionInBytes(unsafe.numElements())
      Buffers.put(unsafe.getBaseObject, unsafe.getBaseOffset + header, to.remaining(), to)
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

  /** Whether a value of the list is null. */
  def hasNull(list: ArrayData): Boolean = list match {
    case unsafe: UnsafeArrayData =>
      // The null bits fill whole words between the number of values and the values.
      val end = UnsafeArrayData.calculateHeaderPortionInBytes(unsafe.numElements())
      var at = java.lang.Long.BYTES
      while (at < end && Platform.getLong(unsafe.getBaseObject, unsafe.getBaseOffset + at) == 0)
        at += java.lang.Long.BYTES
      at < end
    case _ => (0 until list.numElements()).exists(list.isNullAt)
  }
}
