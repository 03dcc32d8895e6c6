package supply.block

import supply.protocol.{Column, Format, Schema}
import supply.protocol.Layout.Constant

/** What the entries of a schema take in a block, if that does not depend on the values. */
private[block] final class FixedSizes private (columns: IndexedSeq[Column]) {
  import FixedSizes.aligned

  /** Of each entry: how many values an element has. */
  private val values: IndexedSeq[Long] = columns.flatMap(FixedSizes.values(_, 1))
  private val entries = columns.flatMap(_.entries)

  /** Bytes of a value; 0: it has bits, or children. */
  private val widths = entries.map(Format.of(_) match {
    case Format.Fixed(bytes) => bytes.toLong
    case _ => 0L
  })

  /** Buffers of bits: of booleans, and of nulls. */
  private val bits = entries.map(entry =>
    (if (Format.of(entry) == Format.Bits) 1 else 0) + (if (entry.nullable) 1 else 0))

  /** The entries that have values of whole bytes. */
  def places: IndexedSeq[Int] = entries.indices.filter(widths(_) > 0)

  /** Bytes of an entry's values, alignment included. */
  def bytes(entry: Int, elements: Int): Int =
    aligned(widths(entry) * values(entry) * elements).toInt

  private def bytes(elements: Long): Long = entries.indices.map(i =>
    aligned(widths(i) * values(i) * elements) + bits(i) * aligned(
      (values(i) * elements + 7) / 8)).sum

  /** The number of elements that fit into that number of bytes. */
  def elementsIn(space: Int): Int = {
    val elementBits = entries.indices.map(i => (8 * widths(i) + bits(i)) * values(i)).sum
    var (fit, tooMany) = (0L, 8L * space / elementBits + 1)
    while (tooMany - fit > 1) {
      val elements = (fit + tooMany) / 2
      if (bytes(elements) <= space) fit = elements else tooMany = elements
    }
    math.min(fit, Int.MaxValue.toLong - 1).toInt
  }
}

private object FixedSizes {
  def of(schema: Schema): Option[FixedSizes] =
    if (schema.entries.nonEmpty && schema.entries.forall(isFixed))
      Some(new FixedSizes(schema.columns))
    else None

  private def isFixed(entry: Column) = Format.of(entry) match {
    case Format.Bits | Format.Fixed(_) | Format.Struct | Format.FixedLists(_) => true
    case Format.Variable | Format.Views | Format.Lists => false
  }

  private def values(column: Column, count: Long): IndexedSeq[Long] = {
    val within = Format.of(column) match {
      case Format.FixedLists(length) => count * length
      case _ => count
    }
    count +: column.children.flatMap(values(_, within))
  }

  private def aligned(bytes: Long): Long =
    (bytes + Constant.BUFFER_ALIGNMENT - 1) & -Constant.BUFFER_ALIGNMENT
}
