package supply.results

import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** Text or bytes of any length. Each access checks the two offsets that it reads. */
private final class BytesColumn(in: ColumnBuffers, dataType: DataType)
    extends MappedColumn(in, dataType) {
  private val offsets = in.offsets
  private val dataBytes = in.dataBytes

  /** Points into the file. */
  override def getUTF8String(row: Int): UTF8String =
    if (isNullAt(row)) null
    else {
      val start = offset(row)
      val length = lengthFrom(row, start)
      if (endsInsideCharacter(data + start, length))
        refuseValue(row, "its text ends inside a character, so it is not UTF-8")
      UTF8String.fromAddress(null, data + start, length)
    }

  override def getBinary(row: Int): Array[Byte] =
    if (isNullAt(row)) null
    else {
      val start = offset(row)
      copy(start, lengthFrom(row, start))
    }

  private def offset(row: Int): Int = memory.int(offsets + 4L * row)

  private def lengthFrom(row: Int, start: Int): Int = {
    val end = offset(row + 1)
    if (start < 0 || end < start || end > dataBytes)
      refuseValue(row,
        s"its offsets are $start and $end: they must never decrease, nor pass data_bytes, $dataBytes")
    end - start
  }

  private def copy(start: Int, length: Int): Array[Byte] =
    memory.copy(data + start, new Array[Byte](length), Platform.BYTE_ARRAY_OFFSET, length.toLong)

  /** Spark's functions for text take the length of a character from its first byte. */
  private def endsInsideCharacter(text: Long, length: Int): Boolean = {
    def begins(back: Int, longer: Int) =
      length >= back && (memory.byte(text + length - back) & 0xff) >= longer
    begins(1, 0xc0) || begins(2, 0xe0) || begins(3, 0xf0)
  }
}
