package supply.plan

import supply.core.ConfigException
import supply.protocol.SavedPosition

/**
 * All ranks walk over all elements of an epoch in one order, and each batch of `batch` elements is
 * cut into a run for each rank. So the sequence of batches does not depend on the number of ranks.
 * Of a last, smaller batch the first ranks get theirs.
 */
private[supply] final case class GlobalOrder(batch: Int, ranks: Int) {
  if (batch < ranks) throw new ConfigException(
    s"--global-batch is $batch, and there are $ranks ranks: it must have an element for each")

  /** What that rank gets. `doneBatches`: of the epoch, which an earlier run has supplied. */
  def stripe(rank: Int, doneBatches: Long): Stripe = {
    val first = begin(rank)
    val share = begin(rank + 1) - first
    Stripe(batch, first, share, doneBatches * share)
  }

  private def begin(rank: Int): Int = ((rank.toLong * batch + ranks - 1) / ranks).toInt

  /** How many of an epoch's elements that rank gets. */
  def elements(rank: Int, all: Long): Long = {
    val Stripe(_, first, share, _) = stripe(rank, 0)
    all / batch * share + math.max(0, math.min(all % batch - first, share.toLong))
  }

  /**
   * The epoch and the number of its batches that these ranks have consumed. Throws a ConfigException
   * if they stopped at different batches.
   */
  def reached(saved: IndexedSeq[SavedPosition]): (Int, Long) = {
    val epoch = saved.map(_.position.epoch).max
    // Those in front of the next epoch have consumed all of this one, and so have the others.
    if (saved.exists(at => at.position.epoch == epoch && at.position.inside.isEmpty)) (epoch, 0)
    else {
      val batches = saved.zipWithIndex.map { case (at, rank) =>
        val share = stripe(rank, 0).share
        (at.position.inside.fold(0L)(_._2) + share - 1) / share
      }
      if (saved.exists(_.position.epoch != epoch) || batches.distinct.size > 1)
        throw new ConfigException(
          s"--resume-positions: the ranks have consumed ${batches.mkString(", ")} batches of epoch $epoch: all ranks must save " +
            "their positions after the same batch")
      (epoch, batches.head)
    }
  }
}

/**
 * The elements of an epoch that a rank gets: of each `batch` ones, `share` from `first` on. They are
 * numbered from 0, and the first `done` ones are not supplied.
 */
private[supply] final case class Stripe(batch: Int, first: Int, share: Int, done: Long) {
  /** The rank's number of element `index` of the epoch; -1: it is of another rank. */
  def own(index: Long): Long = {
    val place = index % batch - first
    if (place < 0 || place >= share) -1 else index / batch * share + place
  }

  /** How many of the rank's elements follow one another from its element `index` on. */
  def run(index: Long): Long = first + share - index % batch
}
