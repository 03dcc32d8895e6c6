package supply.rows

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.catalyst.expressions.{SpecializedGetters, UnsafeArrayData, UnsafeRow}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform

import supply.core.SourceException

/** Values that have no others within them. */
private[rows] object RowValues {
  /** Of a column with this format. */
  def of(dataType: DataType, format: String): RowValue = (dataType, format) match {
    case (decimal: DecimalType, _) => new DecimalValue(decimal.precision, decimal.scale)
    case (variant, _) if SparkTypes.isVariant(variant) => new VariantValue(variant)
    case (_, "e") => new HalfValue(isFloat = dataType == FloatType)
    case (_, "b") => (row, i, to) => to.putByte(if (row.getBoolean(i)) 1 else 0)
    case (_, "c") => (row, i, to) => to.putByte(row.getByte(i))
    case (_, "s") => (row, i, to) => to.putShort(row.getShort(i))
    case (_, "i" | "tdD" | "tiM") => (row, i, to) => to.putInt(row.getInt(i))
    case (_, "f") => (row, i, to) => to.putInt(java.lang.Float.floatToRawIntBits(row.getFloat(i)))
    case (_, "g") => (row, i, to) =>
        to.putLong(java.lang.Double.doubleToRawLongBits(row.getDouble(i)))
    case (_, "z") => (row, i, to) => RowBytes.append(row, i, isText = false, to)
    case (_, "u") => (row, i, to) => RowBytes.append(row, i, isText = true, to)
    case _ => (row, i, to) => to.putLong(row.getLong(i))
  }
}

private final class HalfValue(isFloat: Boolean) extends RowValue {
  override def isInVectors: Boolean = false

  override def append(row: SpecializedGetters, i: Int, to: RunColumn): Unit =
    to.putShort(HalfFloat.bits(if (isFloat) row.getFloat(i).toDouble else row.getDouble(i)))
}

/** 128 bits, two's complement. */
private final class DecimalValue(precision: Int, scale: Int) extends RowValue {
  override def append(row: SpecializedGetters, i: Int, to: RunColumn): Unit = {
    val value = row.getDecimal(i, precision, scale)
    if (precision <= Decimal.MAX_LONG_DIGITS)
      to.put(1).putLong(value.toUnscaledLong).putLong(value.toUnscaledLong >> 63)
    else {
      val unscaled = value.toJavaBigDecimal.unscaledValue
      to.put(1).putLong(unscaled.longValue).putLong(unscaled.shiftRight(64).longValue)
    }
    ()
  }
}

/** A variant as JSON, with times in UTC, as all times of blocks. */
private final class VariantValue(variant: DataType) extends RowValue {
  override def isInVectors: Boolean = false

  override def append(row: SpecializedGetters, i: Int, to: RunColumn): Unit = {
    val json = row.get(i, variant).toString.getBytes(UTF_8)
    to.putBytes(json.length).put(json)
    ()
  }
}

/** The numbers of an array of any length, as bytes. */
private final class ListBytes(name: String, numberBytes: Int) extends RowValue {
  override def append(row: SpecializedGetters, i: Int, to: RunColumn): Unit = {
    // Only rows have such columns, not vectors.
    val list = row.getArray(i).asInstanceOf[UnsafeArrayData]
    if (RowBytes.hasNull(list))
      throw new SourceException(
        s"column '$name' has an array with a null in it: fill it, or drop the row")
    to.putBytes(list.getBaseObject, RowBytes.startOf(list),
      Math.multiplyExact(list.numElements(), numberBytes))
  }
}

/** Copies values from Spark's memory, in the machine's byte order. */
private[rows] object RowBytes {
  /** Appends text or bytes. */
  def append(row: SpecializedGetters, i: Int, isText: Boolean, to: RunColumn): Unit = row match {
    case unsafe: UnsafeRow =>
      val place = unsafe.getLong(i)
      to.putBytes(unsafe.getBaseObject, unsafe.getBaseOffset + (place >>> 32), place.toInt)
    case _ if isText =>
      val text = row.getUTF8String(i)
      to.putBytes(text.getBaseObject, text.getBaseOffset, text.numBytes)
    case _ =>
      val bytes = row.getBinary(i)
      to.putBytes(bytes, Platform.BYTE_ARRAY_OFFSET.toLong, bytes.length)
  }

  /** Where the values of a list begin, if they have one width. */
  def startOf(list: UnsafeArrayData): Long =
    list.getBaseOffset + UnsafeArrayData.calculateHeaderPortionInBytes(list.numElements())

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
