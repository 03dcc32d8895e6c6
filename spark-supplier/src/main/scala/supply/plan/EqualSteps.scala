package supply.plan

import supply.core.SourceException

/**
 * The share of one partition in one epoch if all ranks make the same number of steps: `supplied`
 * elements of the `counted` ones that it has. If that is more, the partition is supplied again.
 */
final case class Share(counted: Long, supplied: Long)

/**
 * Every rank makes the same number of steps in every epoch, each of `stepElements` elements of one
 * partition. So ranks that take one block in each step get the same number of blocks, and ranks
 * that build their own batches get the same number of elements.
 *
 * @param counted
 *   elements of each partition of the source
 * @param isPadded
 *   partitions are filled up to whole steps, and ranks to as many as the one with the most, by
 *   elements that come once more; otherwise what goes beyond whole steps, or beyond the rank with
 *   the fewest, is left out
 * @param steps
 *   of each rank, in each epoch
 */
final case class EqualSteps private (counted: IndexedSeq[Long], stepElements: Int,
    isPadded: Boolean, steps: Long) {

  /**
   * The shares of a rank's partitions, given them in the order of an epoch; in those that are last
   * a step more or less is made.
   */
  def shares(order: IndexedSeq[Int]): IndexedSeq[(Int, Share)] = {
    val own = order.map(partition =>
      partition -> EqualSteps.stepsOf(counted(partition), stepElements, isPadded))
    val supplied = if (isPadded) padded(own) else cut(own)
    supplied.collect {
      case (partition, n) if n > 0 => partition -> Share(counted(partition), n * stepElements)
    }
  }

  private def padded(own: IndexedSeq[(Int, Long)]): IndexedSeq[(Int, Long)] = {
    val last = own.lastIndexWhere(_._2 > 0)
    own.updated(last, own(last)._1 -> (own(last)._2 + steps - own.map(_._2).sum))
  }

  private def cut(own: IndexedSeq[(Int, Long)]): IndexedSeq[(Int, Long)] = {
    var left = steps
    own.map { case (partition, n) =>
      val taken = math.min(n, left)
      left -= taken
      partition -> taken
    }
  }
}

object EqualSteps {

  /**
   * @param ranks
   *   the partitions of each rank
   * @throws SourceException
   *   where a rank has nothing to make a step of
   */
  def apply(counted: IndexedSeq[Long], ranks: IndexedSeq[Seq[Int]], stepElements: Int,
      isPadded: Boolean): EqualSteps = {
    val own = ranks.map(_.map(partition => stepsOf(counted(partition), stepElements, isPadded)).sum)
    if (own.min == 0) {
      val what = if (isPadded) "no element, so there is nothing to repeat (--uneven pad)"
      else
        s"no partition with $stepElements elements, so that no rank could make a step (--uneven drop)"
      throw new SourceException(
        s"rank ${own.indexOf(0L)} has $what: it has ${ranks(own.indexOf(0L)).size} of the " +
          s"${counted.size} partitions, which have ${counted.sum} elements together: make more or fewer partitions, or smaller steps (--block-elements)")
    }
    new EqualSteps(counted, stepElements, isPadded, if (isPadded) own.max else own.min)
  }

  /** Whole steps that a partition gives by itself. */
  private def stepsOf(elements: Long, stepElements: Int, isPadded: Boolean): Long =
    if (isPadded) Math.floorDiv(elements + stepElements - 1, stepElements.toLong)
    else elements / stepElements
}
