package supply.protocol

import supply.protocol.Layout.Constant

/** Where a rank's data resumes: at that element of a partition, or at the start of the epoch. */
private[supply] final case class Position(epoch: Int, inside: Option[(Int, Long)])

private[supply] object Position {
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

/**
 * A position as a rank has saved it, and the plan under which it did; 0: any.
 *
 * @param isInExchange whether it is one of exchanged elements, which mean something only together
 *   with those of the other ranks
 */
private[supply] final case class SavedPosition(position: Position, plan: Long,
    isInExchange: Boolean = false)

private[supply] object SavedPosition {
  /** The text of a rank that has saved nothing: its data begins with its first epoch. */
  val NoPosition: String = "no-position"

  /** Window, elements, and settings, which are not 0: *Exchange* of PROTOCOL.md. */
  private val InExchange =
    ":exchange:[0-9]{1,10}:(?:[0-9]{1,20}|whole):(?!0{16})[0-9a-f]{16}"

  private val Saved =
    s"position-1:([0-9]{1,10}):([01]):([0-9]{1,10}):([0-9]{1,20}):([0-9a-f]{16})($InExchange)?".r

  /** Reads the text of supply_position_to_text(); None: it is another text. */
  def read(text: String): Option[SavedPosition] = text match {
    case NoPosition => Some(SavedPosition(Position.Start, 0))
    case Saved(epoch, inside, partition, element, plan, exchange) =>
      val place = if (inside == "1") Some(int(partition) -> long(element)) else None
      Some(SavedPosition(Position(int(epoch), place), java.lang.Long.parseUnsignedLong(plan, 16),
          isInExchange = exchange != null))
    case _ => None
  }

  /** Larger numbers than a plan has are after all of its own. */
  private def long(digits: String): Long = (BigInt(digits) min BigInt(Long.MaxValue)).toLong

  private def int(digits: String): Int = math.min(long(digits), Int.MaxValue.toLong).toInt
}

/**
 * What a rank gets in each whole epoch.
 *
 * @param steps blocks with elements; 0: not known
 */
private[supply] final case class EpochCounts(elements: Long, steps: Long = 0)
