package supply.plan

import java.util.Random

/**
 * Which rank gets which partitions of the source, in which order, in which epoch: a pure function of these
 * arguments.
 *
 * A partition belongs to the same rank in every epoch, so that one that Spark has cached on the rank's node stays
 * useful; the order is new in every epoch.
 */
final case class Plan(partitions: Int, ranks: Int, epochs: Int, seed: Long) {
  require(partitions >= 0 && ranks >= 1 && epochs >= 1, s"no plan for $partitions partitions, $ranks ranks, $epochs epochs")

  /** The rank's partitions, ascending. */
  def partitionsOf(rank: Int): IndexedSeq[Int] = rank until partitions by ranks

  /**
   * The same for plans in which a position means the same. Never 0.
   *
   * @param elements of the source, where that is known: other data is not the same plan
   */
  def fingerprint(elements: Option[Long]): Long =
    Seq(partitions.toLong, ranks.toLong, seed, elements.getOrElse(-1L)).foldLeft(0L)((h, part) => Plan.mix(h ^ Plan.mix(part))) match {
      case 0 => 1
      case hash => hash
    }

  /** The rank's partitions in the order of that epoch. */
  def order(rank: Int, epoch: Int): IndexedSeq[Int] = {
    val order = partitionsOf(rank).toArray
    // java.util.Random's sequence is specified, and so is this shuffle (Fisher and Yates): plans do not
    // change with the version of a library.
    val random = new Random(Plan.mix(Plan.mix(Plan.mix(seed) + epoch) + rank))
    for (i <- order.indices.reverse) {
      val j = random.nextInt(i + 1)
      val swapped = order(i)
      order(i) = order(j)
      order(j) = swapped
    }
    order.toIndexedSeq
  }
}

object Plan {

  /** The finalizer of SplitMix64: neighbouring seeds give unrelated sequences. */
  private def mix(value: Long): Long = {
    var z = value + 0x9e3779b97f4a7c15L
    z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L
    z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL
    z ^ (z >>> 31)
  }
}
