package supply.sources.rows

import java.nio.ByteBuffer
import java.nio.ByteOrder.LITTLE_ENDIAN

import org.apache.spark.sql.catalyst.expressions.{SpecializedGetters, UnsafeArrayData, UnsafeRow}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.unsafe.Platform

import supply.core.SourceException
import supply.data.ElementWriter

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
