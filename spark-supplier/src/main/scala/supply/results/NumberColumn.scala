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

  private def withoutNulls(in: ColumnBuffers) =
    new ColumnBuffers(in.where, in.memory, in.column, in.elements,
      0, 0, in.offsets, in.data, in.dataBytes)
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

private final class DoubleColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  override def getDouble(row: Int): Double = memory.double(data + 8L * row)

  override def getDoubles(row: Int, count: Int): Array[Double] =
    memory.copy(data + 8L * row, new Array[Double](count), Platform.DOUBLE_ARRAY_OFFSET, 8L * count)
}
