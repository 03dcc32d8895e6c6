package supply.rows

import java.util.Arrays

import org.apache.hadoop.hive.ql.exec.vector.{BytesColumnVector, ColumnVector => OrcVector, DoubleColumnVector, LongColumnVector}
import org.apache.spark.unsafe.Platform

/**
 * The values of vectors of ORC, which has all integers as longs, and all floats as doubles. Dates,
 * instants and decimals are not read here: Spark converts them.
 */
private[rows] final class OrcMemory {
  private var longs = Array.emptyLongArray
  private var doubles = Array.emptyDoubleArray
  private var ints = Array.emptyIntArray
  private var floats = Array.emptyFloatArray
  private var shorts = Array.emptyShortArray
  private var bytes = Array.emptyByteArray
  private var pieces = new Array[Array[Byte]](0)

  /** An array with a value for each row, as blocks have them. None: not for this format. */
  def values(of: OrcVector, rows: Int, format: String): Option[AnyRef] = (format, of) match {
    case ("l", from: LongColumnVector) => Some(longsOf(from, rows))
    case ("g", from: DoubleColumnVector) => Some(doublesOf(from, rows))
    case ("i", from: LongColumnVector) =>
      val all = longsOf(from, rows)
      if (ints.length < rows) ints = new Array(rows)
      each(rows)(row => ints(row) = all(row).toInt)
      Some(ints)
    case ("s", from: LongColumnVector) =>
      val all = longsOf(from, rows)
      if (shorts.length < rows) shorts = new Array(rows)
      each(rows)(row => shorts(row) = all(row).toShort)
      Some(shorts)
    case ("c" | "b", from: LongColumnVector) =>
      val all = longsOf(from, rows)
      if (bytes.length < rows) bytes = new Array(rows)
      each(rows)(row => bytes(row) = all(row).toByte)
      Some(bytes)
    case ("f", from: DoubleColumnVector) =>
      val all = doublesOf(from, rows)
      if (floats.length < rows) floats = new Array(rows)
      each(rows)(row => floats(row) = all(row).toFloat)
      Some(floats)
    case _ => None
  }

  private def longsOf(from: LongColumnVector, rows: Int): Array[Long] =
    if (!from.isRepeating) from.vector
    else {
      if (longs.length < rows) longs = new Array(rows)
      Arrays.fill(longs, 0, rows, from.vector(0))
      longs
    }

  private def doublesOf(from: DoubleColumnVector, rows: Int): Array[Double] =
    if (!from.isRepeating) from.vector
    else {
      if (doubles.length < rows) doubles = new Array(rows)
      Arrays.fill(doubles, 0, rows, from.vector(0))
      doubles
    }

  /** The array in which each text lies: from `starts` on, `lengths` bytes. Those of nulls have none. */
  def texts(of: BytesColumnVector, rows: Int, nulls: Array[Byte], starts: Array[Int],
      lengths: Array[Int]): Array[Array[Byte]] = {
    if (pieces.length < rows) pieces = new Array(rows)
    each(rows) { row =>
      val at = if (of.isRepeating) 0 else row
      if (nulls != null && nulls(row) != 0) {
        pieces(row) = Array.emptyByteArray
        starts(row) = 0
        lengths(row) = 0
      } else {
        pieces(row) = of.vector(at)
        starts(row) = of.start(at)
        lengths(row) = of.length(at)
      }
    }
    pieces
  }

  private def each(rows: Int)(use: Int => Unit): Unit = {
    var row = 0
    while (row < rows) {
      use(row)
      row += 1
    }
  }
}

private[rows] object OrcMemory {
  /** A byte for each row, 1 is null. */
  def nulls(of: OrcVector, rows: Int, to: Array[Byte]): Unit =
    if (of.isRepeating) Arrays.fill(to, 0, rows, if (of.isNull(0)) 1: Byte else 0: Byte)
    else Platform.copyMemory(of.isNull, Platform.BOOLEAN_ARRAY_OFFSET.toLong, to,
      Platform.BYTE_ARRAY_OFFSET.toLong, rows.toLong)
}
