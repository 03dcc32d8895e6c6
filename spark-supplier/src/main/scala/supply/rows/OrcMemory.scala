package supply.rows

import java.util.Arrays

import org.apache.hadoop.hive.ql.exec.vector.{BytesColumnVector, ColumnVector => OrcVector, DoubleColumnVector, LongColumnVector}
import org.apache.spark.unsafe.Platform

/**
 * The values of vectors of ORC, which has all integers as longs, and all floats as doubles. Dates,
 * instants and decimals are not read here: Spark converts them.
 */
private[rows] final class OrcMemory {
  private var values = Array.emptyByteArray
  private var pieces = new Array[Array[Byte]](0)

  /** An array with a value for each row, as blocks have them; null: not for this format. */
  def values(of: OrcVector, rows: Int, format: String): AnyRef = (format, of) match {
    case ("l", from: LongColumnVector) if !from.isRepeating => from.vector
    case ("g", from: DoubleColumnVector) if !from.isRepeating => from.vector
    case ("l", from: LongColumnVector) =>
      each(of, rows, 8)((row, at) => Platform.putLong(values, at, from.vector(row)))
    case ("i", from: LongColumnVector) =>
      each(of, rows, 4)((row, at) => Platform.putInt(values, at, from.vector(row).toInt))
    case ("s", from: LongColumnVector) =>
      each(of, rows, 2)((row, at) => Platform.putShort(values, at, from.vector(row).toShort))
    case ("c" | "b", from: LongColumnVector) =>
      each(of, rows, 1)((row, at) => Platform.putByte(values, at, from.vector(row).toByte))
    case ("g", from: DoubleColumnVector) =>
      each(of, rows, 8)((row, at) => Platform.putDouble(values, at, from.vector(row)))
    case ("f", from: DoubleColumnVector) =>
      each(of, rows, 4)((row, at) => Platform.putFloat(values, at, from.vector(row).toFloat))
    case _ => null
  }

  /** Calls `put` with the place in the vector that has each row's value, and with the value's own place. */
  private def each(of: OrcVector, rows: Int, width: Int)(put: (Int, Long) => Unit): Array[Byte] = {
    if (values.length < width * rows) values = new Array(width * rows)
    var row = 0
    while (row < rows) {
      put(if (of.isRepeating) 0 else row, Platform.BYTE_ARRAY_OFFSET + width.toLong * row)
      row += 1
    }
    values
  }

  /** The array in which each text lies: from `starts` on, `lengths` bytes. Those of nulls have none. */
  def texts(of: BytesColumnVector, rows: Int, nulls: Array[Byte], starts: Array[Int],
      lengths: Array[Int]): Array[Array[Byte]] = {
    if (pieces.length < rows) pieces = new Array(rows)
    var row = 0
    while (row < rows) {
      val at = if (of.isRepeating) 0 else row
      val isNull = nulls != null && nulls(row) != 0
      pieces(row) = if (isNull) Array.emptyByteArray else of.vector(at)
      starts(row) = if (isNull) 0 else of.start(at)
      lengths(row) = if (isNull) 0 else of.length(at)
      row += 1
    }
    pieces
  }
}

private[rows] object OrcMemory {
  /** A byte for each row, 1 is null. */
  def nulls(of: OrcVector, rows: Int, to: Array[Byte]): Unit =
    if (of.isRepeating) Arrays.fill(to, 0, rows, if (of.isNull(0)) 1: Byte else 0: Byte)
    else Platform.copyMemory(of.isNull, Platform.BOOLEAN_ARRAY_OFFSET.toLong, to,
      Platform.BYTE_ARRAY_OFFSET.toLong, rows.toLong)
}
