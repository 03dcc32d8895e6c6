package supply.plan

import supply.core.{ConfigException, SourceException}

/** What a partition gives in an epoch: `supplied` elements, which repeat if it has fewer. */
private[supply] final case class Share(counted: Long, supplied: Long)

/**
 * Every rank makes the same number of `steps` in every epoch. A step has `stepElements` elements of
 * one partition. So ranks that take a block for each step get the same number of blocks, and ranks
 * that make their own batches get the same number of elements. If `isPadded`, elements repeat until
 * each partition has whole steps, and each rank has the steps of the rank with the most. Otherwise
 * elements are left out, and each rank has the steps of the rank with the fewest.
 */
private[supply] final case class EqualSteps private (counted: IndexedSeq[Long], stepElements: Int,
    isPadded: Boolean, steps: Long) {
  /** The shares of partitions in an epoch's order; the last give the added or missing steps. */
  def shares(order: IndexedSeq[Int]): IndexedSeq[(Int, Share)] = {
    val own = order.map(partition =>
      partition -> EqualSteps.stepsOf(counted(partition), stepElements, isPadded))
    val supplied = if (isPadded) padded(own) else cut(own)
    supplied.collect {
      case (partition, n) if n > 0 => partition -> Share(counted(partition), n * stepElements)
    }
  }

  /** Number of elements that `ranks` ranks get together in an epoch. */
  def elementsOfAll(ranks: Int): Long = steps * stepElements * ranks

  /**
   * The same for the rest of an epoch, of which each rank has the parts `left`. It may have no step
   * at all. Throws ConfigException if a rank has nothing to repeat.
   */
  private[plan] def ofRest(left: IndexedSeq[Seq[Part]], epoch: Int): EqualSteps = {
    val counts = counted.indices.map(_ => 0L).toArray
    left.flatten.foreach(part => counts(part.partition) = counted(part.partition) - part.done)
    def steps(part: Part) = EqualSteps.stepsOf(counts(part.partition), stepElements, isPadded)
    val own = left.map(_.map(steps).sum)
    if (isPadded && own.min == 0 && own.max > 0) throw new ConfigException(
      s"rank ${own.indexOf(0L)} of ${left.size} gets nothing of the rest of epoch $epoch, so it has nothing to repeat " +
        s"(--uneven pad): resume with at most ${left.count(_.nonEmpty)} ranks")
    new EqualSteps(counts.toIndexedSeq, stepElements, isPadded, if (isPadded) own.max else own.min)
  }

  private def padded(own: IndexedSeq[(Int, Long)]): IndexedSeq[(Int, Long)] = {
    val last = own.lastIndexWhere(_._2 > 0)
    // The rest of an epoch may be empty.
    if (last < 0) own
    else own.updated(last, own(last)._1 -> (own(last)._2 + steps - own.map(_._2).sum))
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

private[supply] object EqualSteps {
  /** Throws a SourceException if a rank has too few elements for one step. */
  def apply(counted: IndexedSeq[Long], ranks: IndexedSeq[Seq[Int]], stepElements: Int,
      isPadded: Boolean): EqualSteps = {
    val own = ranks.map(_.map(partition => stepsOf(counted(partition), stepElements, isPadded)).sum)
    if (own.min == 0) {
      val what = if (isPadded) "no element, so there is nothing to repeat (--uneven pad)"
      else
        s"no partition with $stepElements elements, so no rank could make a step (--uneven drop)"
      throw new SourceException(
        s"rank ${own.indexOf(0L)} has $what: it has ${ranks(own.indexOf(0L)).size} of the " +
          s"${counted.size} partitions, which have ${counted.sum} elements together: use more or fewer partitions, or smaller steps (--block-elements)")
    }
    new EqualSteps(counted, stepElements, isPadded, if (isPadded) own.max else own.min)
  }

  /** Number of whole steps that a partition gives. */
  private def stepsOf(elements: Long, stepElements: Int, isPadded: Boolean): Long =
    if (isPadded) Math.floorDiv(elements + stepElements - 1, stepElements.toLong)
    else elements / stepElements
}

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

/** Finds ranks that get nothing of a source, or less than half of what another rank gets. */
private[supply] object Imbalance {
  /**
   * A sentence with the numbers, or None if the ranks' shares are similar.
   *
   * @param data what has the partitions, for the sentence
   * @param sizes of the partitions, with their unit, if known: else all count the same
   */
  def of(data: String, partitions: Int, ranks: Int,
      sizes: Option[(IndexedSeq[Long], String)]): Option[String] = {
    val have =
      s"$data has $partitions partition${if (partitions == 1) "" else "s"} for $ranks ranks"
    if (partitions == 0) None
    else if (partitions < ranks) Some(s"$have, so ${withoutPartition(partitions, ranks)} no rows")
    else sizes.filter(_._1.size == partitions).flatMap { case (known, unit) =>
      val shares = (0 until ranks).map(rank => (rank until partitions by ranks).map(known).sum)
      val (least, most) = (shares.min, shares.max)
      if (most <= 2 * least) None
      else Some(
        s"$have, of which rank ${shares.indexOf(most)} gets $most of ${shares.sum} $unit, and rank " +
          s"${shares.indexOf(least)} gets $least")
    }
  }

  private def withoutPartition(partitions: Int, ranks: Int): String = ranks - partitions match {
    case 1 => s"rank $partitions gets"
    case _ => s"ranks $partitions to ${ranks - 1} get"
  }
}
