package supply.results

import org.apache.spark.sql.types.{DataType, DecimalType}
import org.apache.spark.unsafe.Platform

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
      case ("i" | "tdD", _) => new IntColumn(values, dataType)
      case ("f", _) => new FloatColumn(values, dataType)
      case ("g", _) => new DoubleColumn(values, dataType)
      case ("L", decimal: DecimalType) => new UnsignedLongColumn(values, decimal)
      case (_, decimal: DecimalType) => new DecimalColumn(values, decimal)
      case _ => new LongColumn(values, dataType)
    }
  }

  private def withoutNulls(in: ColumnBuffers) = new ColumnBuffers(in.where, in.column, in.elements,
    0, 0, in.offsets, in.data, in.dataBytes, in.mappingEnd)
}

private final class ByteColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  private val data = in.data

  override def getByte(row: Int): Byte = Platform.getByte(null, data + row)

  override def getBytes(row: Int, count: Int): Array[Byte] = {
    val copy = new Array[Byte](count)
    Platform.copyMemory(null, data + row, copy, Platform.BYTE_ARRAY_OFFSET.toLong, count.toLong)
    copy
  }
}

private final class UnsignedByteColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  private val data = in.data

  override def getShort(row: Int): Short = (Platform.getByte(null, data + row) & 0xff).toShort
}

private final class ShortColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  private val data = in.data

  override def getShort(row: Int): Short = Platform.getShort(null, data + 2L * row)
}

private final class UnsignedShortColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  private val data = in.data

  override def getInt(row: Int): Int = Platform.getShort(null, data + 2L * row) & 0xffff
}

private final class IntColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  private val data = in.data

  override def getInt(row: Int): Int = Platform.getInt(null, data + 4L * row)

  override def getInts(row: Int, count: Int): Array[Int] = {
    val copy = new Array[Int](count)
    Platform.copyMemory(null, data + 4L * row, copy, Platform.INT_ARRAY_OFFSET.toLong, 4L * count)
    copy
  }
}

private final class UnsignedIntColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  private val data = in.data

  override def getLong(row: Int): Long = Platform.getInt(null, data + 4L * row) & 0xffffffffL
}

/** Integers and instants. */
private final class LongColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  private val data = in.data

  override def getLong(row: Int): Long = Platform.getLong(null, data + 8L * row)

  override def getLongs(row: Int, count: Int): Array[Long] = {
    val copy = new Array[Long](count)
    Platform.copyMemory(null, data + 8L * row, copy, Platform.LONG_ARRAY_OFFSET.toLong, 8L * count)
    copy
  }
}

private final class FloatColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  private val data = in.data

  override def getFloat(row: Int): Float = Platform.getFloat(null, data + 4L * row)

  override def getFloats(row: Int, count: Int): Array[Float] = {
    val copy = new Array[Float](count)
    Platform.copyMemory(null, data + 4L * row, copy, Platform.FLOAT_ARRAY_OFFSET.toLong, 4L * count)
    copy
  }
}

private final class DoubleColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  private val data = in.data

  override def getDouble(row: Int): Double = Platform.getDouble(null, data + 8L * row)

  override def getDoubles(row: Int, count: Int): Array[Double] = {
    val copy = new Array[Double](count)
    Platform.copyMemory(null, data + 8L * row, copy, Platform.DOUBLE_ARRAY_OFFSET.toLong,
      8L * count)
    copy
  }
}
