package supply.protocol

import supply.protocol.Layout.Constant

/**
 * Where a rank's data goes on: in an epoch, and where that has begun, behind so many elements of a
 * partition.
 *
 * @param inside
 *   partition, and index of its next element; None: at the beginning of the epoch
 */
final case class Position(epoch: Int, inside: Option[(Int, Long)])

object Position {

  /** Behind END_OF_DATA. */
  val End: Position = Position(Int.MaxValue, None)

  /** Behind that block, or that end. */
  def after(block: Notification): Position = block.kind match {
    case Constant.NOTIFICATION_BLOCK =>
      Position(block.epoch, Some(block.partition -> (block.firstElement + block.elementCount)))
    case Constant.NOTIFICATION_END_OF_EPOCH => Position(block.epoch + 1, None)
    case _ => End
  }
}
