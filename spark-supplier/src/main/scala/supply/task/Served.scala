package supply.task

import java.net.{InetAddress, InetSocketAddress, NetworkInterface}
import java.nio.file.{Files, Path, Paths}
import java.util.Comparator

import scala.util.Using

import org.apache.spark.{SparkEnv, TaskContext}

import supply.core.{Deadline, DriverCalls, PairHeldException, RankException}
import supply.pair.{ConfigFiles, Link, LinkServer, Pair, PairPaths}

/** The names under which ranks connect, wherever they are: the value of --serve. */
private[supply] final case class Served(run: String, data: String) {
  override def toString: String = if (data.isEmpty) run else s"$run/$data"

  /** Where results of the ranks are, on the nodes of executors. */
  def folder: String = s"${Served.folder}/$this"

  /** Of the pairs that the ranks would have there: each is the local rank of its number. */
  def configFiles(ranks: Int): ConfigFiles = {
    def lines(line: String => String) =
      (0 until ranks).map(rank => line(s"$folder/rank-$rank") + "\n").mkString
    ConfigFiles("mapped-files", "named-pipes",
      Map("mapped-files" -> lines(path => s"$path.mapped"),
        "named-pipes" -> lines(path => s"$path.request $path.notification")))
  }
}

private[supply] object Served {
  private val Name = "[A-Za-z0-9_-]{1,64}"

  def isName(text: String): Boolean = text.matches(Name)

  /** Of all results that nodes of this application keep. */
  private def folder: String =
    "/dev/shm/supply-" + SparkEnv.get.conf.get("spark.app.id").replaceAll("[^A-Za-z0-9_-]", "_")

  /** In a task or in local mode: they go with the session. */
  private[task] def keepForSession(): Unit = {
    val own = Paths.get(folder)
    SessionEnd.atEnd(folder)(Using.resource(Files.walk(own))(
        _.sorted(Comparator.reverseOrder[Path]).forEach(path => {
        Files.deleteIfExists(path); ()
      })))
  }

  /** None: it is no RUN or RUN/DATA. */
  def read(text: String): Option[Served] = text.split("/", -1) match {
    case Array(run) if isName(run) => Some(Served(run, ""))
    case Array(run, data) if isName(run) && isName(data) => Some(Served(run, data))
    case _ => None
  }
}

/**
 * How tasks wait for ranks that connect.
 *
 * @param key which the ranks prove
 * @param ports at which an executor listens: the first one that is free; 0: any
 * @param address by which the ranks find the driver, for messages
 * @param isHere whether all ranks are on this machine, because Spark is local
 */
private[supply] final case class TaskLinks(served: Served, key: Array[Byte], isTls: Boolean,
    ports: Range, address: String, isHere: Boolean, reconnectSeconds: Double) {

  /** As Pair.attach, for a rank that connects to this executor. */
  private[task] def attach(rank: Int, paths: PairPaths, attempt: Int, user: SupplySettings,
      run: Long, driver: DriverCalls, isExpected: () => Boolean): Pair = {
    val host = PinnedTask.host
    val server =
      LinkServer(isTls, if (isHere) InetAddress.getLoopbackAddress else bind(host), ports)
    val link = new Deadline(user.timeout).find(TaskLinks.PollMillis)(
      server.register(Link.Of(served.run, served.data, rank), key, paths, reconnectSeconds) {
        name =>
          Served.keepForSession()
          driver.ask[Unit](TaskMessage.Keeps(rank, host, name))
      }).getOrElse(
      throw new PairHeldException(
        f"rank $rank%d: another attempt of the same task still waits for it in this executor (waited ${user.timeout}%.0f s; --timeout)",
        isTimeout = true))
    var pair = Option.empty[Pair]
    try {
      val named = if (isHere) InetAddress.getLoopbackAddress.getHostAddress else host
      driver.ask[Unit](TaskMessage.Waits(rank, TaskContext.get().taskAttemptId(),
          s"$named:${server.port}${if (isTls) "/tls" else ""}"))
      new Deadline(user.secondsOfRank).poll(TaskLinks.PollMillis) {
        pair = Pair.over(link, paths, attempt, user.secondsOfRank, run)
        pair.isDefined || !isExpected()
      }
      pair.getOrElse(throw new RankException(
          f"rank $rank%d has not connected to $address%s within ${user.secondsOfRank}%.0f s: is its program running, with this " +
            s"SUPPLY_CONNECT, and does it reach $named (port ${server.port})? (--rank-timeout)",
          isTimeout = true))
    } finally if (pair.isEmpty) link.close()
  }

  /** The executor's address, or all of the machine's if it has no such one. */
  private def bind(host: String): InetAddress = {
    val named = InetAddress.getByName(host)
    if (NetworkInterface.getByInetAddress(named) != null) named
    else new InetSocketAddress(0).getAddress
  }
}

private[supply] object TaskLinks {
  private val PollMillis = 20L
}
