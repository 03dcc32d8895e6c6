package supply.protocol

/**
 * A position as a rank has saved it, and the plan under which it did; 0: any.
 *
 * @param isInExchange whether it is one of exchanged elements, which mean something only together
 *   with those of the other ranks
 */
final case class SavedPosition(position: Position, plan: Long, isInExchange: Boolean = false)

object SavedPosition {
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
