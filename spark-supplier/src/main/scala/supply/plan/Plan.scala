package supply.plan

import java.util.Random

/**
 * Which rank gets which partitions of the source, in which order, in which epoch: a pure function
 * of these arguments. A partition belongs to the same rank in every epoch, so what Spark has cached
 * of it on the rank's node stays useful. A batch of a stream is the epoch `firstEpoch` of many.
 */
final case class Plan(
    partitions: Int, ranks: Int, epochs: Int, seed: Long, shuffle: Shuffle = Shuffle.Partitions,
    equalSteps: Option[EqualSteps] = None,
    firstEpoch: Int = 0) {
  require(partitions >= 0 && ranks >= 1 && epochs >= 0,
    s"no plan for $partitions partitions, $ranks ranks, $epochs epochs")

  def epochNumbers: Range = firstEpoch until firstEpoch + epochs

  /** The rank's partitions, ascending. */
  def partitionsOf(rank: Int): IndexedSeq[Int] = rank until partitions by ranks

  /** Equal for plans, and numbers of elements, with which a position means the same. Never 0. */
  def fingerprint(elements: Option[Long]): Long = {
    val order = shuffle match {
      case Shuffle.Partitions => Seq.empty
      case Shuffle.Off => Seq(1L)
      case Shuffle.Elements(buffer) => Seq(2L, buffer.toLong)
    }
    val amounts = equalSteps.toSeq.flatMap(steps =>
      Seq(if (steps.isPadded) 4L else 3L, steps.stepElements.toLong) ++ steps.counted)
    (Seq(partitions.toLong, ranks.toLong, seed, elements.getOrElse(-1L)) ++ order ++ amounts)
      .foldLeft(0L)((hash, part) => Plan.mix(hash ^ Plan.mix(part))) match {
      case 0 => 1
      case hash => hash
    }
  }

  /** Number of elements that each rank gets in a whole epoch, by rank, if known. */
  def rankElements(partitionElements: Option[IndexedSeq[Long]]): Option[IndexedSeq[Long]] =
    equalSteps.map(equal => IndexedSeq.fill(ranks)(equal.steps * equal.stepElements)).orElse(
      partitionElements.map(elements => (0 until ranks).map(partitionsOf(_).map(elements).sum)))

  /** Number of elements that all ranks get in an epoch, if known. */
  def elements(partitionElements: Option[IndexedSeq[Long]]): Option[Long] =
    rankElements(partitionElements).map(_.sum)

  /** The rank's partitions in the order of that epoch. */
  def order(rank: Int, epoch: Int): IndexedSeq[Int] =
    if (shuffle == Shuffle.Off) partitionsOf(rank) else shuffledOrder(rank, epoch)

  /** The same without partitions that give nothing, each with its share; None: all it has. */
  def shares(rank: Int, epoch: Int): IndexedSeq[(Int, Option[Share])] = {
    val all = order(rank, epoch)
    equalSteps match {
      case Some(steps) => steps.shares(all).map { case (partition, share) =>
          partition -> Some(share)
        }
      case None => all.map(_ -> None)
    }
  }

  /** The seed of the order of a partition's elements in that epoch. */
  def elementSeed(partition: Int, epoch: Int): Long =
    Plan.mix(Plan.mix(Plan.mix(Plan.mix(seed) ^ epoch) + 1) ^ partition)

  private def shuffledOrder(rank: Int, epoch: Int): IndexedSeq[Int] = {
    val order = partitionsOf(rank).toArray
    // The sequence of java.util.Random is specified, and this shuffle (Fisher-Yates) stands here: plans do not
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
