package supply.run

import java.net.InetAddress
import java.security.MessageDigest

import scala.collection.concurrent.TrieMap

import org.slf4j.LoggerFactory

import supply.core.{ConfigException, Threads}
import supply.net.{Connection, Listener, Tls}

/**
 * The server in which the processes of all runs of this JVM meet: docs/design/hub.md says how. It
 * ends with its last run, and calls `ended`. Nobody holds its lock and asks for that of a run.
 *
 * @param ports the first one that is free is taken; 0: any
 */
private[supply] final class Hub(bind: InetAddress, limits: Hub.Limits = Hub.Limits(),
    tls: Option[Tls] = None, ports: Seq[Int] = Seq(0), ended: () => Unit = () => ())
    extends AutoCloseable {
  private val runs = TrieMap.empty[String, HubRun]
  private var isClosed = false
  private val listener = new Listener[HubRun](bind, ports, "supply-hub", tls,
    limits.secondsOfStrangers, find, serve)
  listener.every(1)(closeWaiting())
  Hub.log.info(s"a hub for the processes of runs is at $address:$port")

  def port: Int = listener.port

  def address: InetAddress = listener.address

  def isTls: Boolean = listener.isTls

  /** Opens a run; again, if it is open with that key. None: the hub has ended. */
  def open(name: String, key: Array[Byte]): Option[HubRun] = {
    if (key.length != Listener.KeyBytes) throw new ConfigException(
      s"the key of a run has ${Listener.KeyBytes} bytes, and not ${key.length}")
    val opened = synchronized {
      if (isClosed) None
      else Some(runs.getOrElseUpdate(name,
          new HubRun(name, key.clone(), limits.secondsOfPolls, () => queueBytes, listener.executor,
            close => { listener.later(Hub.LingerSeconds)(close()); () })))
    }
    opened match {
      // Another thread is closing it. Then its name is free.
      case Some(run) if run.isClosed => close(run); open(name, key)
      case Some(run) if !MessageDigest.isEqual(run.key, key) =>
        throw new ConfigException(s"the run $name has another key")
      case _ => opened
    }
  }

  /** What may wait in one queue: all together must leave the driver its memory. */
  private def queueBytes: Long =
    math.min(limits.waitingBytes, limits.allBytes / (2L * math.max(1, runs.size)))

  /** An open run. */
  def run(name: String): Option[HubRun] = runs.get(name).filterNot(_.isClosed)

  /** The run that ranks elsewhere know by that name, and its key for them. */
  def served(name: String): Option[(HubRun, Array[Byte])] = runs.values.filterNot(_.isClosed)
    .flatMap(run => run.public.collect { case (`name`, key) => run -> key }).headOption

  /** Gives a run that name, too. Throws a ConfigException if another run has it, or it has another one. */
  def serve(run: HubRun, name: String, key: Array[Byte]): Unit = synchronized {
    val taken = served(name).map(_._1).orElse(runs.get(name)).filter(_ ne run)
    if (taken.isDefined || run.public.exists { case (other, known) =>
        other != name || !MessageDigest.isEqual(known, key)
      }) throw new ConfigException(
      s"the run ${run.name} cannot be served as $name: another run has that name, or it has another name or key already")
    run.public = Some(name -> key)
  }

  /** By a public name nobody becomes the client. */
  private def find(role: Int, name: String): Option[(HubRun, Array[Byte])] =
    if (role > Listener.Place) None
    else run(name).map(run => run -> run.key).orElse(
      if (role == Listener.Client) None else served(name))

  /** Ends all connections of that run, if it is open, and the hub with its last run. */
  def close(name: String): Unit = runs.get(name).foreach(close)

  private def close(run: HubRun): Unit = {
    run.close()
    val isLast = synchronized {
      // Another one may have the name by now.
      if (runs.get(run.name).contains(run)) runs -= run.name
      val isLast = runs.isEmpty && !isClosed
      if (isLast) stopListening()
      isLast
    }
    if (isLast) end()
  }

  /** Ends all runs. */
  override def close(): Unit = {
    val (isFirst, open) = synchronized {
      val isFirst = !isClosed
      stopListening()
      (isFirst, runs.values.toSeq)
    }
    open.foreach(close)
    if (isFirst) end()
  }

  private def stopListening(): Unit = {
    isClosed = true
    listener.stop()
  }

  private def end(): Unit = {
    listener.close()
    ended()
  }

  /** What fails for one run is still done for the others. */
  private def each(runs: Iterable[HubRun])(check: HubRun => Unit): Unit =
    runs.foreach(run => Threads.logging(s"a check of the run ${run.name}")(check(run)))

  /** As of the listener, for tests. */
  private[run] def closeDead(ends: Set[java.net.SocketAddress]): Unit = listener.closeDead(ends)

  /**
   * Peers for which all others wait, and runs without a client: it has died, or cannot reach us. One
   * that polls its run may not poll its output: a paused terminal takes none.
   */
  private def closeWaiting(): Unit = {
    each(runs.values)(_.closeStalled(limits.secondsOfPeers))
    each(runs.values.filter(_.isLeftFor(Hub.AnswerSeconds)))(close)
    val clients = runs.values.groupBy(_.name.stripSuffix(Hub.OfOutput)).values
    each(clients.filter(_.forall(_.secondsAlone > limits.secondsAlone)).flatten) { run =>
      Hub.log.warn(
        f"the run ${run.name} has had no client for ${limits.secondsAlone}%.0f s: it is closed")
      close(run)
    }
  }

  private def serve(role: Int, run: HubRun, connection: Connection): Unit = role match {
    case Listener.Peer => run.servePeer(connection)
    case Listener.File => run.serveFile(connection)
    case Listener.Place => run.servePlace(connection)
    case _ =>
      if (run.enter(connection))
        try run.serveClient(connection)
        finally close(run)
  }
}

private[supply] object Hub {
  private val log = LoggerFactory.getLogger("supply.run.Hub")

  /**
   * @param waitingBytes what may wait for a client, and for all peers of a run
   * @param allBytes what may wait in all runs, about
   * @param secondsOfStrangers until a connection must have proved its key
   * @param secondsAlone how long a run stays open without a client
   * @param secondsOfPeers
   *   how long a peer may take nothing while others wait for space: less than a client waits for a call
   * @param secondsOfPolls between two answers to polls of a run, on average: Spark shows each
   */
  final case class Limits(waitingBytes: Long = 64L << 20,
      allBytes: Long = Runtime.getRuntime.maxMemory / 8, secondsOfStrangers: Double = 30,
      secondsAlone: Double = 300, secondsOfPeers: Double = 30, secondsOfPolls: Double = 1)

  /** The name of a run for output is that of its run with this at its end. */
  private final val OfOutput = "-output"

  /** How long a run without a client answers ranks after its last write. */
  private final val AnswerSeconds = 60.0

  /** How long a peer may take what was sent to it before it is ended. */
  private final val LingerSeconds = 5.0
}
