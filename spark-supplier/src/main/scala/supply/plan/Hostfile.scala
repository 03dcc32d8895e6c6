package supply.plan

import java.io.IOException
import java.net.{InetAddress, UnknownHostException}
import java.util.Locale
import java.util.concurrent.{CompletableFuture, ConcurrentHashMap, LinkedBlockingQueue, ThreadPoolExecutor, TimeUnit, TimeoutException}

import scala.util.Try

import org.slf4j.LoggerFactory

import supply.core.{ConfigException, ConfigText, Deadline}

/**
 * Where a rank is: its host (None: this node, the only one), and its number there. `names`: others
 * that Spark has for its host.
 */
private[supply] final case class RankPlacement(
    host: Option[String], localRank: Int, names: Set[String] = Set.empty) {
  /** Whether `name`, a host as Spark knows it, is this place's host. Looks nothing up ([[HostNames]]). */
  def isOn(name: String): Boolean =
    names(name) || host.forall(given => isSame(plain(given), plain(name)))

  private def isSame(expected: String, name: String) = {
    // Two names with domains are two hosts if they differ. An address has no short name.
    def isShort(s: String) = !s.exists(c => c == '.' || c == ':')
    def short(s: String) = if (s.matches("[0-9.]+|.*:.*")) s else s.takeWhile(_ != '.')
    def sameShort = (isShort(expected) || isShort(name)) && short(expected) == short(name)
    expected == name || sameShort
  }

  /** Names know no case, and Spark writes an address of IPv6 in brackets. */
  private def plain(name: String) = name.toLowerCase(Locale.ROOT).stripPrefix("[").stripSuffix("]")
}

/** The places of all ranks. As with mpirun, rank r gets slot r in the order of the host file. */
private[supply] final case class Hostfile(places: IndexedSeq[RankPlacement]) {
  /** The places of each host, in the order of the host file; empty if there is no host file. */
  @transient lazy val byHost: Seq[(String, Seq[RankPlacement])] = {
    val ofHost = places.groupBy(_.host)
    places.flatMap(_.host).distinct.map(host => host -> ofHost(Some(host)))
  }

  /** host: as Spark knows it. */
  def ranksOn(host: String): Seq[Int] = places.indices.filter(places(_).isOn(host))
}

private[supply] object Hostfile {
  private val Slots = "slots=(.*)".r

  /** As MPICH writes slots. An address of IPv6 has more colons. */
  private val Mpich = "([^:]+):([0-9]+)".r

  /** All ranks on this node. */
  def oneNode(ranks: Int): Hostfile = Hostfile((0 until ranks).map(RankPlacement(None, _)))

  /** Reads a host file; without one, all ranks are on this node. `texts`: see [[ConfigText]]. */
  def apply(file: Option[String], ranks: Int, texts: Map[String, String] = Map.empty): Hostfile =
    file.map(read(_, ranks, texts)).getOrElse(oneNode(ranks))

  /** A rank on each slot of a host file. */
  def all(file: String, texts: Map[String, String]): Hostfile =
    Hostfile(places(hosts(file, texts)).toIndexedSeq)

  /** Reads a host file in Open MPI's format: `host [slots=n]`; the default is one slot. */
  def read(file: String, ranks: Int, texts: Map[String, String] = Map.empty): Hostfile = {
    val found = hosts(file, texts)
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

  private def hosts(file: String, texts: Map[String, String]): Seq[(String, Int)] = {
    val lines =
      try ConfigText.lines(file, texts)
      catch {
        case e: IOException => throw new ConfigException(
            s"cannot read the host file $file (${e.getClass.getSimpleName})", e)
      }
    val hosts = lines.zipWithIndex.flatMap { case (line, i) =>
      val words = line.takeWhile(_ != '#').split("\\s+").filter(_.nonEmpty)
      words.headOption.map { host =>
        Mpich.unapplySeq(host).foreach { parts =>
          throw new ConfigException(
            s"$file:${i + 1}: '$host' is no name of a host: write '${parts.head} slots=${parts(1)}'")
        }
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

/**
 * Finds the hosts of a host file among those of Spark, which may have other names for the same
 * nodes. Only the driver looks names up: each once, all at the same time, and it waits at most
 * `limitSeconds` for a name. A name without an answer is compared as text. What a slow look-up finds
 * later is used from then on.
 */
private[plan] final class HostNames(limitSeconds: Double)(
    resolve: String => Set[InetAddress]) {
  import HostNames._

  private val lookUps = new ConcurrentHashMap[String, LookUp]

  private val threads = {
    val pool = new ThreadPoolExecutor(Threads, Threads, 1, TimeUnit.SECONDS,
      new LinkedBlockingQueue[Runnable],
      { (work: Runnable) =>
        val thread = new Thread(work, "supply-host-names")
        thread.setDaemon(true)
        thread
      })
    pool.allowCoreThreadTimeOut(true)
    pool
  }

  /**
   * The same places, with the names that `others`, hosts as Spark knows them, have for their hosts.
   * Looks names up only if some of both have no partner with the same name.
   */
  def known(hosts: Hostfile, others: Seq[String]): Hostfile = {
    val names = others.toSet
    val single = hosts.byHost.map(_._2.head).filterNot(place =>
      place.host.exists(names) || others.exists(place.isOn)).flatMap(_.host)
    lazy val unnamed = others.distinct.filterNot(name => hosts.byHost.exists(_._2.head.isOn(name)))
    if (single.isEmpty || unnamed.isEmpty) hosts
    else {
      val addresses = addressesOf(single ++ unnamed)
      val found = single.map(host =>
        host -> unnamed.filter(addresses(_).intersect(addresses(host)).nonEmpty).toSet).toMap
      Hostfile(hosts.places.map(place =>
          place.copy(names = place.names ++ place.host.flatMap(found.get).getOrElse(Set.empty))))
    }
  }

  /** The addresses of each name; none: it is unknown, or there is no answer in time. */
  def addressesOf(names: Seq[String]): Map[String, Set[InetAddress]] = {
    val begun = names.distinct.map(name =>
      name -> lookUps.compute(name,
        (_, last) => if (last == null) new LookUp(name, limitSeconds) else last.renewed()))
    val late = begun.filter { case (_, lookUp) => lookUp.isNewlyLate }.map(_._1)
    if (late.nonEmpty) log.warn(
      f"no answer for the names ${late.mkString(", ")}%s of hosts within $limitSeconds%.0f s: these hosts are known only by " +
        "the names that Spark has for them. Name hosts as Spark does, or mend the look-up of names (DNS, /etc/hosts)")
    begun.map { case (name, lookUp) => name -> lookUp.found }.toMap
  }

  private final class LookUp(name: String, limit: Double) {
    private val answer = CompletableFuture.supplyAsync(() => resolve(name), threads)
    private val end = new Deadline(limit)
    private val retry = new Deadline(RetrySeconds)
    private var isLate = limit == 0

    /** The next one if nothing was found some time ago: a node may get its name later. */
    def renewed(): LookUp =
      if (answer.isDone && found.isEmpty && retry.passed) new LookUp(name, limit = 0) else this

    /** Waits for the answer, but not again if none came in time. */
    def isNewlyLate: Boolean = synchronized {
      val before = isLate
      if (!isLate)
        try answer.get(math.max(0, end.remainingNanos), TimeUnit.NANOSECONDS)
        catch { case _: TimeoutException => isLate = true }
      isLate && !before
    }

    def found: Set[InetAddress] = answer.getNow(Set.empty)
  }
}

private[supply] object HostNames {
  private val log = LoggerFactory.getLogger(classOf[HostNames])

  /** A resolver asks the second name server after 5 seconds. */
  private final val LimitSeconds = 6.0
  private final val RetrySeconds = 10.0
  private final val Threads = 32

  private val ofThisJvm = new HostNames(LimitSeconds)({ name =>
    try InetAddress.getAllByName(name).toSet
    catch { case _: UnknownHostException => Set.empty }
  })

  /** As HostNames.known, for all of this JVM. */
  def known(hosts: Hostfile, others: Seq[String]): Hostfile = ofThisJvm.known(hosts, others)

  /**
   * Addresses of hosts, for any node. A loopback address that a name has on the driver's node
   * (Debian's 127.0.1.1) means the driver's node only, so it is left out.
   */
  def addresses(names: Seq[String]): Map[String, Set[String]] =
    ofThisJvm.addressesOf(names).map { case (name, found) =>
      val isMeant = name.equalsIgnoreCase("localhost") || name.contains(':')
      val everywhere = found.filter(address =>
        !address.isLoopbackAddress || isMeant || name == address.getHostAddress)
      name -> everywhere.map(_.getHostAddress)
    }
}
