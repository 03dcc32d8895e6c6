package supply.plan

import supply.core.ConfigException

/** What becomes of the elements where some ranks have more than others. */
sealed trait Uneven extends Product with java.io.Serializable

object Uneven {

  /** Every element is supplied once, and ranks make different numbers of steps. */
  case object Keep extends Uneven

  /**
   * Every rank makes as many steps as the one with the fewest; what is left is not supplied in that
   * epoch.
   */
  case object Drop extends Uneven

  /**
   * Every rank makes as many steps as the one with the most; some elements come more than once in
   * that epoch.
   */
  case object Pad extends Uneven

  def named(name: String): Uneven = name match {
    case "keep" => Keep
    case "drop" => Drop
    case "pad" => Pad
    case other => throw new ConfigException(s"--uneven is '$other': it must be keep, drop or pad")
  }
}
