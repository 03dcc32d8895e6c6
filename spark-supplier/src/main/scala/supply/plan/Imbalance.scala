package supply.plan

/** Finds ranks that get nothing of a source, or less than half of what another rank gets. */
object Imbalance {
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
