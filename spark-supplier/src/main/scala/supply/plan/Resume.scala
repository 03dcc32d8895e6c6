package supply.plan

import supply.core.ConfigException
import supply.protocol.{Exchange, Position}

/** Continues a run that stopped, with any number of ranks: a pure function. */
private[supply] object Resume {
  /**
   * The plan of what a run has left: the rest of the epoch in which it stopped, then whole epochs
   * with the numbers that they had. `stopped` is the plan of that run, and `positions` what each of
   * its ranks has consumed. `next` is the plan of the ranks that continue, as if they began with
   * epoch 0. Throws ConfigException if ranks stopped in different epochs, or exchanged elements and
   * stopped in the middle of one.
   */
  def apply(stopped: Plan, positions: IndexedSeq[Position], next: Plan,
      partitionElements: Option[IndexedSeq[Long]]): Plan = {
    val begun = positions.map(afterStart(stopped, _))
    val epoch = begun.map(_.epoch).min
    requireSameEpoch(begun, epoch)
    if (stopped.exchange != Exchange.Off) requireWholeEpochs(begun)
    val isBegun = stopped.isRest(epoch) || begun.exists(_ != Position(epoch, None))
    next.copy(
      firstEpoch = epoch,
      epochs = math.max(0, next.epochs - epoch),
      rest =
        if (isBegun) Some(Rest(epoch, left(stopped, begun, epoch, partitionElements), next,
            partitionElements))
        else None)
  }

  /** A rank that has not received anything is at the beginning of its run. */
  private def afterStart(stopped: Plan, position: Position): Position =
    if (position.inside.isEmpty && position.epoch < stopped.firstEpoch)
      Position(stopped.firstEpoch, None)
    else position

  /** All ranks must have stopped in one epoch. The beginning of the next one is its end. */
  private def requireSameEpoch(positions: IndexedSeq[Position], epoch: Int): Unit = {
    val last = positions.indexWhere(position =>
      position.epoch != epoch && position != Position(epoch + 1, None))
    if (last >= 0) {
      val first = positions.indexWhere(_.epoch == epoch)
      throw new ConfigException(
        s"$Name: rank $first of ${positions.size} stopped in epoch $epoch, and rank $last in epoch " +
          s"${positions(last).epoch}: give positions that all ranks saved in the same epoch, or at its end")
    }
  }

  /** Elements of one rank's partitions are with other ranks until the epoch ends. */
  private def requireWholeEpochs(positions: IndexedSeq[Position]): Unit = {
    val other = positions.indexWhere(position =>
      position.inside.isDefined || position != positions.head)
    if (other >= 0) throw new ConfigException(
      s"$Name: the ranks exchanged elements (--shuffle all), and rank $other of ${positions.size} did not stop at the end " +
        "of the same epoch as the others: save positions at the end of an epoch, or resume with the same number of ranks, each " +
        "with its own position")
  }

  /** What no rank has consumed of the epoch. */
  private def left(stopped: Plan, positions: IndexedSeq[Position], epoch: Int,
      partitionElements: Option[IndexedSeq[Long]]): Seq[Part] =
    positions.indices.flatMap { rank =>
      val done = consumed(stopped, rank, positions(rank), epoch)
      stopped.all(rank, epoch).map(part =>
        part.copy(done = math.max(part.done, done.getOrElse(part.partition, 0L))))
    }.filter { part =>
      part.done < partitionElements.fold(Long.MaxValue)(_(part.partition))
    }

  /** How many elements a rank has consumed of each partition that it has begun. */
  private def consumed(
      stopped: Plan, rank: Int, position: Position, epoch: Int): Map[Int, Long] = {
    val parts = stopped.parts(rank, epoch)
    def whole(part: Part) = part.partition -> part.share.fold(Long.MaxValue)(_.supplied)
    if (position.epoch > epoch) parts.map(whole).toMap
    else position.inside.fold(Map.empty[Int, Long]) { case (partition, done) =>
      val earlier = parts.takeWhile(_.partition != partition)
      if (earlier.size == parts.size) throw new ConfigException(
        s"$Name: rank $rank of ${stopped.ranks} cannot have stopped in partition $partition, which is " +
          "not its own: give the positions of all ranks, in rank order")
      earlier.map(whole).toMap + (partition -> done)
    }
  }

  private val Name = "--resume-positions"
}

/**
 * The rest of an epoch in which an earlier run stopped: what is `left` for each rank, in the order
 * in which it gets it. `equalSteps` counts only elements that are left.
 */
private[supply] final case class Rest(epoch: Int, left: IndexedSeq[IndexedSeq[Part]],
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

private[supply] object Rest {

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
