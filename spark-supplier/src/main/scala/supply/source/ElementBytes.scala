package supply.source

import supply.protocol.{Column, Format}
import supply.protocol.Layout.View

/**
 * Upper bound of the bytes that an element adds to a block, beside those of texts and bytes, and of the
 * values of lists whose number differs.
 */
private[supply] object ElementBytes {
  def of(column: Column): Long = own(column) + (if (column.nullable) 1 else 0)

  private def own(column: Column): Long = Format.of(column) match {
    case Format.Bits => 1
    case Format.Variable | Format.Lists => Integer.BYTES
    case Format.Views => View.SIZE
    case Format.Struct => ofChildren(column)
    case Format.FixedLists(count) => count * ofChildren(column)
    case Format.Fixed(bytes) => bytes
  }

  /** Of one element of each child. */
  def ofChildren(column: Column): Long = column.children.map(of).sum
}
