package supply.protocol

import supply.protocol.Layout.Constant

/** Where a rank's data resumes: at that element of a partition, or at the start of the epoch. */
final case class Position(epoch: Int, inside: Option[(Int, Long)])

object Position {
  /** Of a rank that brings none. */
  val Start: Position = Position(0, None)

  /** After END_OF_DATA. */
  val End: Position = Position(Int.MaxValue, None)

  /** After a block, END_OF_EPOCH or END_OF_DATA. */
  def after(block: Notification): Position = block.kind match {
    case Constant.NOTIFICATION_BLOCK =>
      Position(block.epoch, Some(block.partition -> (block.firstElement + block.elementCount)))
    case Constant.NOTIFICATION_END_OF_EPOCH => Position(block.epoch + 1, None)
    case _ => End
  }
}
