package supply.plan

import supply.core.ConfigException
import supply.protocol.SavedPosition

/** Which ranks read one ring: the value of --share. */
private[supply] sealed trait Sharing extends Product with Serializable {
  /** The rings of that number of ranks, at least. */
  def rings(ranks: Int): Int = this match {
    case Sharing.Neighbours(count) => math.max(1, ranks / count)
    case Sharing.OfNode => 1
  }
}

private[supply] object Sharing {
  /** N neighbouring ranks; 1: each rank has a ring of its own. */
  final case class Neighbours(count: Int) extends Sharing

  /** All ranks of a node. */
  case object OfNode extends Sharing

  val Off: Sharing = Neighbours(1)

  /** Throws a ConfigException if the value is neither a number of ranks nor "node". */
  def named(value: String): Sharing = value match {
    case "node" => OfNode
    case Count(digits) if digits.toInt >= 1 => Neighbours(digits.toInt)
    case _ => throw new ConfigException(
        s"--share is '$value': it must be a number of ranks, from 1 on, or 'node'")
  }

  private val Count = "([0-9]{1,6})".r
}

/**
 * The ranks that read one ring, for each ring. Tasks, plans and reports count groups; host files and
 * what a rank is told count ranks.
 */
private[supply] final case class Groups(ranks: IndexedSeq[Range]) {
  def size: Int = ranks.size

  /** The first rank of a group, whose file has the ring. */
  def first(group: Int): Int = ranks(group).head

  /** Where the tasks of the groups are: at the first rank of each. */
  def places(hosts: Hostfile): Hostfile = Hostfile(ranks.map(group => hosts.places(group.head)))
}

private[supply] object Groups {
  /** Throws a ConfigException if these ranks cannot be grouped so. */
  def apply(hosts: Hostfile, sharing: Sharing): Groups = {
    val groups = sharing match {
      case Sharing.Neighbours(count) => ofNeighbours(hosts.places.size, count)
      case Sharing.OfNode => Groups(ofNodes(hosts))
    }
    groups.ranks.foreach(group => requireNeighbours(hosts, group, sharing))
    groups
  }

  private def ofNeighbours(ranks: Int, count: Int): Groups = {
    if (ranks % count != 0) throw new ConfigException(
      s"--share is $count, and there are $ranks ranks: each $count neighbouring ranks read the same rows, so give a " +
        "multiple of it")
    Groups((0 until ranks by count).map(first => first until first + count))
  }

  private def ofNodes(hosts: Hostfile): IndexedSeq[Range] = {
    val starts = hosts.places.indices.filter(rank =>
      rank == 0 || hosts.places(rank).host != hosts.places(rank - 1).host)
    starts.zip(starts.drop(1) :+ hosts.places.size).map { case (from, until) => from until until }
  }

  /** Reader i of a group is the local rank i after the first one's. */
  private def requireNeighbours(hosts: Hostfile, group: Range, sharing: Sharing): Unit = {
    val first = hosts.places(group.head)
    val start = sharing match {
      case Sharing.Neighbours(count) => first.localRank % count
      case Sharing.OfNode => first.localRank
    }
    val areNeighbours = start == 0 && group.forall { rank =>
      val place = hosts.places(rank)
      place.host == first.host && place.localRank == first.localRank + rank - group.head
    }
    if (!areNeighbours) throw new ConfigException(
      s"--share: ranks ${group.head} to ${group.last} read one ring, and are not all on one node: give each node of the host " +
        "file a multiple of the share as slots")
  }

  /**
   * The positions of groups, from those of all ranks of an earlier run with the same sharing. Throws
   * a ConfigException if ranks of one group have not saved the same.
   */
  def positions(saved: IndexedSeq[SavedPosition], sharing: Sharing,
      now: Groups): IndexedSeq[SavedPosition] = {
    val groups = sharing match {
      case Sharing.Neighbours(count) => ofNeighbours(saved.size, count)
      case Sharing.OfNode if saved.size == now.ranks.map(_.size).sum => now
      case Sharing.OfNode => throw new ConfigException(
          s"--resume-positions has ${saved.size} positions, and with --share node it is not known which of these ranks were on " +
            "one node: resume with as many ranks on each node")
    }
    groups.ranks.map { group =>
      group.find(rank => saved(rank) != saved(group.head)).foreach(other =>
        throw new ConfigException(
          s"--resume-positions: ranks ${group.head} and $other read one ring (--share), and have saved other positions: all " +
            "ranks must save after the same batch"))
      saved(group.head)
    }
  }
}
