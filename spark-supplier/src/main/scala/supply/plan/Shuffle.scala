package supply.plan

import supply.core.ConfigException

/** In which order a rank gets its elements. */
sealed trait Shuffle extends Product with java.io.Serializable

object Shuffle {

  /** In that of the source, in every epoch. */
  case object Off extends Shuffle

  /** Its partitions in a new order in each epoch; those of one partition in that of the source. */
  case object Partitions extends Shuffle

  /**
   * Its partitions in a new order, and those of one partition too: each is drawn from the next
   * `buffer` that have not come yet.
   */
  final case class Elements(buffer: Int) extends Shuffle

  def named(name: String, buffer: Int): Shuffle = name match {
    case "none" => Off
    case "partitions" => Partitions
    case "elements" =>
      if (buffer < 1)
        throw new ConfigException(s"--shuffle-buffer is $buffer: it must be at least 1")
      Elements(buffer)
    case other =>
      throw new ConfigException(s"--shuffle is '$other': it must be none, partitions or elements")
  }
}
