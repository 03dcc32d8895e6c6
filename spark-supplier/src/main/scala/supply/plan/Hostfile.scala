package supply.plan

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._
import scala.util.Try

import supply.core.ConfigException

/**
 * Where a rank is: its host (None: this node, the only one), and its number there. `names`: others
 * that Spark has for its host.
 */
final case class RankPlacement(
    host: Option[String], localRank: Int, names: Set[String] = Set.empty) {
  /** Whether `name`, a host as Spark knows it, is this place's host. Looks nothing up ([[HostNames]]). */
  def isOn(name: String): Boolean = host.forall { expected =>
    // Two names with domains are two hosts if they differ. An address has no short name.
    def isShort(s: String) = !s.exists(c => c == '.' || c == ':')
    def short(s: String) = if (s.matches("[0-9.]+|.*:.*")) s else s.takeWhile(_ != '.')
    def sameShort = (isShort(expected) || isShort(name)) && short(expected) == short(name)
    expected == name || names(name) || sameShort
  }
}

/** The places of all ranks. As with mpirun, rank r gets slot r in the order of the host file. */
final case class Hostfile(places: IndexedSeq[RankPlacement]) {
  /** The places of each host, in the order of the host file; empty if there is no host file. */
  @transient lazy val byHost: Seq[(String, Seq[RankPlacement])] = {
    val ofHost = places.groupBy(_.host)
    places.flatMap(_.host).distinct.map(host => host -> ofHost(Some(host)))
  }

  /** host: as Spark knows it. */
  def ranksOn(host: String): Seq[Int] = places.indices.filter(places(_).isOn(host))
}

object Hostfile {
  private val Slots = "slots=(.*)".r

  /** All ranks on this node. */
  def oneNode(ranks: Int): Hostfile = Hostfile((0 until ranks).map(RankPlacement(None, _)))

  /** Reads a host file; without one, all ranks are on this node. */
  def apply(file: Option[String], ranks: Int): Hostfile =
    file.map(read(_, ranks)).getOrElse(oneNode(ranks))

  /** A rank on each slot of a host file. */
  def all(file: String): Hostfile = Hostfile(places(hosts(file)).toIndexedSeq)

  /** Reads a host file in Open MPI's format: `host [slots=n]`; the default is one slot. */
  def read(file: String, ranks: Int): Hostfile = {
    val found = hosts(file)
    val available = found.map(_._2.toLong).sum
    if (available < ranks)
      throw new ConfigException(
        s"$file has $available slots for $ranks ranks: add hosts or raise slots=n")
    Hostfile(places(found).take(ranks).toIndexedSeq)
  }

  /** One at a time: a line can have any number of slots. */
  private def places(hosts: Seq[(String, Int)]): Iterator[RankPlacement] =
    hosts.iterator.flatMap { case (host, slots) =>
      Iterator.range(0, slots).map(RankPlacement(Some(host), _))
    }

  private def hosts(file: String): Seq[(String, Int)] = {
    val lines =
      try Files.readAllLines(Paths.get(file), UTF_8).asScala
      catch {
        case e: IOException => throw new ConfigException(
            s"cannot read the host file $file (${e.getClass.getSimpleName})", e)
      }
    val hosts = lines.zipWithIndex.flatMap { case (line, i) =>
      val words = line.takeWhile(_ != '#').split("\\s+").filter(_.nonEmpty)
      words.headOption.map { host =>
        val slots = words.tail.collectFirst { case Slots(n) => n }.map { n =>
          Try(n.toInt).filter(_ > 0).getOrElse(
            throw new ConfigException(s"$file:${i + 1}: '$n' is not a number of slots"))
        }.getOrElse(1)
        host -> slots
      }
    }
    val repeated = hosts.map(_._1).diff(hosts.map(_._1).distinct)
    if (repeated.nonEmpty) throw new ConfigException(
      s"$file names ${repeated.head} twice: write one line for each host, with slots=n")
    hosts.toSeq
  }
}
