package supply.plan

import supply.core.ConfigException
import supply.protocol.Layout.Constant.EXCHANGE_FRACTION_UNIT

/** In which order a rank gets its elements. */
sealed trait Shuffle extends Product with java.io.Serializable

object Shuffle {
  /** The order of the source, in every epoch. */
  case object Off extends Shuffle

  /** Partitions in a new order in each epoch; the elements of each in the order of the source. */
  case object Partitions extends Shuffle

  /** As [[Partitions]], with each element drawn from the next `buffer` ones of its partition. */
  final case class Elements(buffer: Int) extends Shuffle

  /** As [[Partitions]]; then the ranks exchange that many of EXCHANGE_FRACTION_UNIT elements. */
  final case class All(fraction: Int = EXCHANGE_FRACTION_UNIT) extends Shuffle

  /** Elements from which the next one is drawn, unless the user names another number. */
  private val DefaultBuffer = 1024

  /** Throws a ConfigException if a value is wrong, or has no effect on this shuffle. */
  def named(name: String, buffer: Option[Int] = None,
      exchangeFraction: Option[Double] = None): Shuffle = {
    val shuffle = named(name, buffer.getOrElse(DefaultBuffer), exchangeFraction)
    def only(option: String, isGiven: Boolean, of: String): Unit =
      if (isGiven && name != of) throw new ConfigException(
        s"--$option is for --shuffle $of, and --shuffle is '$name': give both, or neither")
    only("exchange-fraction", exchangeFraction.isDefined, "all")
    only("shuffle-buffer", buffer.isDefined, "elements")
    shuffle
  }

  private def named(name: String, buffer: Int, exchangeFraction: Option[Double]): Shuffle =
    name match {
      case "none" => Off
      case "partitions" => Partitions
      case "elements" =>
        if (buffer < 1)
          throw new ConfigException(s"--shuffle-buffer is $buffer: it must be at least 1")
        Elements(buffer)
      case "all" => exchangeFraction.fold(All())(all)
      case other =>
        throw new ConfigException(
          s"--shuffle is '$other': it must be none, partitions, elements or all")
    }

  private def all(fraction: Double): All = {
    val millionths = math.round(fraction * EXCHANGE_FRACTION_UNIT)
    if (millionths < 1 || !(fraction <= 1)) throw new ConfigException(
      s"--exchange-fraction is $fraction: it must be at least ${1.0 / EXCHANGE_FRACTION_UNIT} and at most 1")
    All(millionths.toInt)
  }
}
