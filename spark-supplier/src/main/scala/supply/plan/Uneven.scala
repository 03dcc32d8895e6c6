package supply.plan

import supply.core.ConfigException

/** What to do if some ranks have more elements than others. */
sealed trait Uneven extends Product with java.io.Serializable

object Uneven {
  /** Supply every element once: ranks make different numbers of steps. */
  case object Keep extends Uneven

  /** Every rank makes the steps of the rank with the fewest; the other elements are left out. */
  case object Drop extends Uneven

  /** Every rank makes the steps of the rank with the most; some elements repeat. */
  case object Pad extends Uneven

  def named(name: String): Uneven = name match {
    case "keep" => Keep
    case "drop" => Drop
    case "pad" => Pad
    case other => throw new ConfigException(s"--uneven is '$other': it must be keep, drop or pad")
  }
}
