package supply.plan

import supply.core.ConfigException
import supply.protocol.{Position, SavedPosition}

/**
 * All elements of an epoch have one order, and each batch of `batch` elements is cut into a run for
 * each rank, which it takes from the ring of its node. So the sequence of batches does not depend on
 * the number of ranks. Of a last, smaller batch the first ranks get theirs.
 */
private[supply] final case class GlobalOrder(batch: Int, ranks: Int) {
  if (batch < ranks) throw new ConfigException(
    s"--global-batch is $batch, and there are $ranks ranks: it must have an element for each")

  private[plan] def begin(rank: Int): Int = ((rank.toLong * batch + ranks - 1) / ranks).toInt

  private[plan] def share(rank: Int): Int = begin(rank + 1) - begin(rank)

  /** How many of an epoch's first `all` elements that rank gets. */
  def elements(rank: Int, all: Long): Long =
    all / batch * share(rank) +
      math.max(0, math.min(all % batch - begin(rank), share(rank).toLong))

  /** The number in the epoch of the rank's element `own`. */
  private def index(rank: Int, own: Long): Long =
    own / share(rank) * batch + begin(rank) + own % share(rank)

  /**
   * The epoch, and how many of its first elements these ranks have consumed together. A rank's
   * position is after the elements that it has passed, its own and others'. `begun`: where their run
   * began. `all`: the elements of an epoch, if known. Throws a ConfigException if they stopped at
   * different batches.
   */
  def reached(
      saved: IndexedSeq[SavedPosition], begun: (Int, Long), all: Option[Long]): (Int, Long) = {
    val places = saved.map(_.position).zipWithIndex.map {
      // Such a rank has not received anything yet.
      case (Position(epoch, None), rank) if epoch <= begun._1 =>
        (begun._1, elements(rank, begun._2))
      case (Position(epoch, inside), rank) => (epoch, elements(rank, inside.fold(0L)(_._2)))
    }
    val epoch = places.map(_._1).min
    val (inside, ended) = places.indices.partition(places(_)._1 == epoch)
    // All in front of the first element that a rank inside the epoch gets next. Of these, the ranks
    // inside have consumed their own, and ranks at the end of the epoch all of theirs. So no element
    // is lost, with and without a last batch that is smaller, of which some ranks get nothing, or
    // repeat another batch ("pad").
    val done = inside.map(rank => index(rank, places(rank)._2)).min
    val isOne = inside.forall(rank => elements(rank, done) == places(rank)._2) &&
      ended.forall(rank =>
        places(rank) == ((epoch + 1, 0L)) || saved(rank).position == Position.End) &&
      all.forall(all =>
        (done >= all || done % batch == 0) &&
          // If the ranks inside have had all of theirs, too, done is past the end of the epoch.
          ended.forall(rank => elements(rank, math.min(done, all)) == elements(rank, all)))
    if (!isOne) {
      val batches = places.zipWithIndex.map {
        case ((`epoch`, own), rank) =>
          s"${own / share(rank)}${if (own % share(rank) == 0) "" else " and a part"}"
        case _ => "all"
      }
      throw new ConfigException(
        s"--resume-positions: the ranks have consumed ${batches.mkString(", ")} batches of epoch $epoch: all ranks must save " +
          "their positions after the same batch")
    }
    (epoch, done)
  }
}
