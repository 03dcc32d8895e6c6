package supply.plan

/**
 * The rest of an epoch in which an earlier run stopped: what is `left` for each rank, in the order
 * in which it gets it. `equalSteps` counts only elements that are left.
 */
final case class Rest(epoch: Int, left: IndexedSeq[IndexedSeq[Part]],
    equalSteps: Option[EqualSteps] = None) {
  /** The parts that a rank gets, each with its share. */
  def parts(rank: Int): IndexedSeq[Part] = equalSteps.fold(left(rank)) { steps =>
    val shares = steps.shares(left(rank).map(_.partition)).toMap
    for (part <- left(rank); share <- shares.get(part.partition)) yield {
      val Share(counted, supplied) = share
      part.copy(share = Some(Share(part.done + counted, part.done + supplied)))
    }
  }

  /** Other numbers for any other rest. */
  def numbers: Seq[Long] = epoch.toLong +: left.flatMap(parts =>
    parts.size.toLong +: parts.flatMap(part => Seq(part.partition.toLong, part.done)))

  /** Number of elements that all ranks get, if known. */
  def elements(partitionElements: Option[IndexedSeq[Long]]): Option[Long] =
    equalSteps.map(_.elementsOfAll(left.size)).orElse(
      partitionElements.map(counted => left.flatten.map(Rest.size(_, counted)).sum))
}

object Rest {

  /**
   * Spreads parts over the ranks of a plan as evenly as possible: by their elements if these are
   * known, else by their number.
   */
  def apply(epoch: Int, parts: Seq[Part], plan: Plan,
      partitionElements: Option[IndexedSeq[Long]]): Rest = {
    val elements = partitionElements.fold((_: Part) => 1L)(counted => size(_, counted))
    val own = Array.fill(plan.ranks)(Vector.empty[Part])
    val loads = new Array[Long](plan.ranks)
    parts.sortBy(part => (-elements(part), part.partition)).foreach { part =>
      val rank = loads.indexOf(loads.min)
      own(rank) :+= part
      loads(rank) += elements(part)
    }
    val left = own.indices.map(rank => plan.shuffled(own(rank).sortBy(_.partition), rank, epoch))
    Rest(epoch, left, plan.equalSteps.map(_.ofRest(left, epoch)))
  }

  /** Elements of a part. */
  private def size(part: Part, counted: IndexedSeq[Long]): Long =
    counted(part.partition) - part.done
}
