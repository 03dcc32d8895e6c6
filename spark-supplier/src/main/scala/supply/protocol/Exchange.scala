package supply.protocol

import supply.protocol.Layout.Constant

/**
 * What the ranks of a run must do with their elements before a program reads them.
 *
 * @param fraction how much of the elements, in EXCHANGE_FRACTION_UNIT
 */
final case class Exchange(policy: Int, seed: Long, fraction: Int)

object Exchange {
  /** Each rank reads what its task supplies. */
  val Off: Exchange = Exchange(0, 0, 0)

  /** Deals a fraction of the elements to all ranks. */
  def all(seed: Long, fraction: Int): Exchange = Exchange(Constant.EXCHANGE_ALL, seed, fraction)
}
