package supply.results

import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** Text or bytes of any length. Each access checks the two offsets that it reads. */
private final class BytesColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  private val offsets = in.offsets
  private val data = in.data
  private val dataBytes = in.dataBytes
  private val safeEnd = in.mappingEnd - BytesColumn.ReadPast

  /** Points into the file. */
  override def getUTF8String(row: Int): UTF8String =
    if (isNullAt(row)) null
    else {
      val start = offset(row)
      val length = lengthFrom(row, start)
      if (data + start + length <= safeEnd) UTF8String.fromAddress(null, data + start, length)
      else UTF8String.fromBytes(copy(start, length))
    }

  override def getBinary(row: Int): Array[Byte] =
    if (isNullAt(row)) null
    else {
      val start = offset(row)
      copy(start, lengthFrom(row, start))
    }

  private def offset(row: Int): Int = Platform.getInt(null, offsets + 4L * row)

  private def lengthFrom(row: Int, start: Int): Int = {
    val end = offset(row + 1)
    if (start < 0 || end < start || end > dataBytes)
      refuseValue(row,
        s"its offsets are $start and $end: they must never decrease, nor pass data_bytes, $dataBytes")
    end - start
  }

  private def copy(start: Int, length: Int): Array[Byte] = {
    val bytes = new Array[Byte](length)
    Platform.copyMemory(null, data + start, bytes, Platform.BYTE_ARRAY_OFFSET.toLong, length.toLong)
    bytes
  }
}

private[results] object BytesColumn {
  /**
   * If text ends inside a character, Spark's functions for text read up to 3 bytes after it. Text
   * that lies so close to the end of the mapping is copied.
   */
  final val ReadPast = 8
}
