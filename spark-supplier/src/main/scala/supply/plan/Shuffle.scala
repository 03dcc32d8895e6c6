package supply.plan

import supply.core.ConfigException

/** In which order a rank gets its elements. */
sealed trait Shuffle extends Product with java.io.Serializable

object Shuffle {
  /** The order of the source, in every epoch. */
  case object Off extends Shuffle

  /** Partitions in a new order in each epoch; the elements of each in the order of the source. */
  case object Partitions extends Shuffle

  /** As [[Partitions]], with each element drawn from the next `buffer` ones of its partition. */
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
