package supply.run

import java.io.{BufferedInputStream, BufferedOutputStream, DataInputStream, DataOutputStream, IOException}
import java.net.{BindException, InetAddress, InetSocketAddress, ServerSocket, Socket, SocketAddress}
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.{US_ASCII, UTF_8}
import java.nio.file.{Files, Path}
import java.security.{MessageDigest, SecureRandom}
import java.util.HexFormat
import java.util.concurrent.{RejectedExecutionException, Semaphore, SynchronousQueue, ThreadPoolExecutor, TimeUnit}
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

import scala.collection.concurrent.TrieMap
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import jdk.net.ExtendedSocketOptions.{TCP_KEEPCOUNT, TCP_KEEPIDLE, TCP_KEEPINTERVAL}
import org.slf4j.LoggerFactory

import supply.core.{ConfigException, Threads}

/**
 * The server in which the processes of all runs of this JVM meet: docs/design/hub.md says how. It
 * ends with its last run, and calls `ended`. Nobody holds its lock and asks for that of a run.
 *
 * @param ports the first one that is free is taken; 0: any
 */
private[supply] final class Hub(bind: InetAddress, limits: Hub.Limits = Hub.Limits(),
    tls: Option[HubTls] = None, ports: Range = 0 to 0, ended: () => Unit = () => ())
    extends AutoCloseable {
  private val server = Hub.listen(bind, ports)
  private val threads = Hub.threads()
  private val timer = Threads.scheduler("supply-hub-timer")
  private val strangers = new Semaphore(Hub.MostStrangers)
  private val runs = TrieMap.empty[String, HubRun]
  private val accepting = new Object
  private var isClosed = false
  threads.execute(() => accept())
  every(1)(closeWaiting())
  every(10)(closeDead())
  Hub.log.info(s"a hub for the processes of runs is at $address:$port")

  def port: Int = server.getLocalPort

  def address: InetAddress = server.getInetAddress

  def isTls: Boolean = tls.isDefined

  /** Opens a run; again, if it is open with that key. None: the hub has ended. */
  def open(name: String, key: Array[Byte]): Option[HubRun] = {
    if (key.length != Hub.KeyBytes) throw new ConfigException(
      s"the key of a run has ${Hub.KeyBytes} bytes, and not ${key.length}")
    val opened = synchronized {
      if (isClosed) None
      else Some(runs.getOrElseUpdate(name,
          new HubRun(name, key.clone(), limits.secondsOfPolls,
            () => queueBytes, threads, close => { closeLater(Hub.LingerSeconds)(close()); () })))
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

  /** Whoever finds it closed can listen at its port. */
  private def stopListening(): Unit = {
    isClosed = true
    server.close()
    // The kernel keeps the port until accept() has returned.
    accepting.synchronized(())
  }

  private def end(): Unit = {
    timer.shutdown() // What waits for its time is still done.
    threads.shutdown() // Those that work end with their connections.
    ended()
  }

  private def closeLater(seconds: Double)(close: => Unit) =
    timer.schedule((() => close): Runnable, (seconds * 1000).toLong, TimeUnit.MILLISECONDS)

  private def every(seconds: Long)(check: => Unit): Unit = {
    timer.scheduleWithFixedDelay(() => Threads.logging("a check of the hub")(check), seconds,
      seconds, TimeUnit.SECONDS)
    ()
  }

  /** What fails for one run is still done for the others. */
  private def each(runs: Iterable[HubRun])(check: HubRun => Unit): Unit =
    runs.foreach(run => Threads.logging(s"a check of the run ${run.name}")(check(run)))

  /** Connections to nodes that are gone. */
  private def closeDead(): Unit = {
    val dead = HubConnection.dead(port)
    if (dead.nonEmpty) each(runs.values)(_.closeAll(dead))
  }

  /**
   * Peers for which all others wait, and runs without a client: it has died, or cannot reach us. One
   * that polls its run may not poll its output: a paused terminal takes none.
   */
  private def closeWaiting(): Unit = {
    each(runs.values)(_.closeStalled(limits.secondsOfPeers))
    val clients = runs.values.groupBy(_.name.stripSuffix(Hub.OfOutput)).values
    each(clients.filter(_.forall(_.secondsAlone > limits.secondsAlone)).flatten) { run =>
      Hub.log.warn(
        f"the run ${run.name} has had no client for ${limits.secondsAlone}%.0f s: it is closed")
      close(run)
    }
  }

  private def accept(): Unit = while (!server.isClosed) {
    strangers.acquire()
    try {
      val socket = accepting.synchronized(server.accept())
      try threads.execute(() => serve(new HubConnection(socket, tls)))
      catch { case e: Throwable => socket.close(); throw e }
    } catch {
      case _: RejectedExecutionException => () // The hub has just been closed.
      case e: Throwable =>
        strangers.release()
        if (!server.isClosed) {
          Hub.log.warn("the hub cannot take a connection, and tries again", e)
          Thread.sleep(Hub.RetryMillis)
        }
    }
  }

  private def serve(connection: HubConnection): Unit =
    try pass(connection)
    finally connection.close()

  private def pass(connection: HubConnection): Unit = {
    val late = closeLater(limits.secondsOfStrangers)(connection.close())
    val met =
      try {
        connection.begin()
        meet(connection)
      } finally {
        late.cancel(false)
        strangers.release()
      }
    met match {
      case Some((Hub.Peer, run)) => run.servePeer(connection)
      case Some((Hub.File, run)) => run.serveFile(connection)
      case Some((_, run)) if run.enter(connection) =>
        try run.serveClient(connection)
        finally close(run)
      case _ => ()
    }
  }

  /** Returns the role and the run of a connection that has proved the run's key. */
  private def meet(connection: HubConnection): Option[(Int, HubRun)] = {
    import connection.{certificate, in, out, readBytes}
    val isOurs = readBytes(Hub.Magic.length).sameElements(Hub.Magic)
    val role = if (isOurs) in.readUnsignedByte() else -1
    if (!Hub.Roles(role)) None
    else {
      val found = run(new String(readBytes(in.readUnsignedShort()), UTF_8))
      val theirs = readBytes(Hub.RandomBytes)
      val own = Hub.random()
      out.writeByte(if (found.isDefined) 0 else Hub.NoSuchRun)
      out.write(own)
      out.flush()
      found.filter { run =>
        val isProven = MessageDigest.isEqual(readBytes(Hub.KeyBytes),
          Hub.proof(run.key, "peer".getBytes(US_ASCII), own, theirs, certificate))
        if (isProven) {
          out.write(Hub.proof(run.key, "hub".getBytes(US_ASCII), theirs, own, certificate))
          out.flush()
        } else Hub.log.warn(s"$connection does not know the key of the run ${run.name}")
        isProven
      }.map(role -> _)
    }
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

  private[run] final val Peer = 0
  private[run] final val Client = 1
  private[run] final val File = 2
  private val Roles = Set(Peer, Client, File)
  private final val NoSuchRun = 1

  /** The name of a run for output is that of its run with this at its end. */
  private final val OfOutput = "-output"

  private[run] val Magic: Array[Byte] = "SUPPLYH1".getBytes(US_ASCII)
  private[run] final val KeyBytes = 32
  private[run] final val RandomBytes = 32

  /** Connections that the kernel accepts for us. */
  private final val Waiting = 4096

  /** Connections that have not proved a key. More must wait. */
  private final val MostStrangers = 4096

  /** How long a peer may take what was sent to it before it is ended. */
  private final val LingerSeconds = 5.0

  private final val RetryMillis = 100L
  private final val IdleSeconds = 10L

  private def listen(bind: InetAddress, ports: Range): ServerSocket =
    try new ServerSocket(ports.head, Waiting, bind)
    catch {
      case e: BindException if ports.size > 1 =>
        log.warn(s"the hub tries the port after ${ports.head}: $e")
        listen(bind, ports.tail)
    }

  private val secure = new SecureRandom

  private[run] def random(): Array[Byte] = {
    val bytes = new Array[Byte](RandomBytes)
    secure.nextBytes(bytes)
    bytes
  }

  /** HMAC-SHA256: Java's, so that it is there in FIPS mode, too. */
  private[supply] def proof(key: Array[Byte], parts: Array[Byte]*): Array[Byte] = {
    val mac = Mac.getInstance("HmacSHA256")
    mac.init(new SecretKeySpec(key, "HmacSHA256"))
    parts.foreach(mac.update)
    mac.doFinal()
  }

  /** Daemon threads, as many as there is work; an error of work is logged. */
  private def threads(): ThreadPoolExecutor =
    new ThreadPoolExecutor(0, Int.MaxValue, IdleSeconds, TimeUnit.SECONDS,
      new SynchronousQueue[Runnable],
      { (worker: Runnable) =>
        val thread = new Thread(worker, "supply-hub")
        thread.setDaemon(true)
        thread
      }) {
      override def execute(work: Runnable): Unit = super.execute(() =>
        try work.run()
        catch {
          case e @ (_: IOException | _: InterruptedException | _: RejectedExecutionException) =>
            log.debug("a connection of the hub has ended", e)
          case e: Throwable => log.warn("a connection of the hub has failed", e)
        })
    }
}

/** A socket at the hub. Its methods never wait for TLS, but those that read and write. */
private[run] final class HubConnection(socket: Socket, tls: Option[HubTls]) extends AutoCloseable {
  private lazy val secured = tls.map(_.over(socket))
  lazy val in = new DataInputStream(new BufferedInputStream(streams.getInputStream))
  lazy val out = new DataOutputStream(new BufferedOutputStream(streams.getOutputStream))

  private def streams = secured.getOrElse(socket)

  /** The other end. */
  def remote: SocketAddress = socket.getRemoteSocketAddress

  /** Lets the kernel find out within a minute that a silent node is gone, and begins TLS. */
  def begin(): Unit = {
    socket.setTcpNoDelay(true)
    socket.setKeepAlive(true)
    Seq(TCP_KEEPIDLE -> 30, TCP_KEEPINTERVAL -> 10, TCP_KEEPCOUNT -> 3).foreach {
      case (option, value) => if (socket.supportedOptions.contains(option))
          socket.setOption(option, Int.box(value))
    }
    secured.foreach(_.startHandshake())
  }

  /** SHA-256 of the certificate that the other end has seen; without TLS nothing. */
  def certificate: Array[Byte] = secured.fold(Array.empty[Byte])(socket =>
    MessageDigest.getInstance("SHA-256").digest(
      socket.getSession.getLocalCertificates.head.getEncoded))

  def readBytes(count: Int): Array[Byte] = {
    val bytes = new Array[Byte](count)
    in.readFully(bytes)
    bytes
  }

  /** The other side reads an end; it may still send. */
  def endOutput(): Unit = socket.shutdownOutput()

  override def close(): Unit =
    try socket.close()
    catch { case NonFatal(_) => () }

  override def toString: String = s"a connection from ${socket.getInetAddress.getHostAddress}"
}

private[run] object HubConnection {
  /** If data, or a question for space, was sent again so often, nothing has come back for about a minute. */
  private final val MostTries = 8

  /**
   * The other ends of the connections of that port that are dead, as Linux shows them. While sent
   * data is not acknowledged, keepalive does nothing, and Java has no TCP_USER_TIMEOUT. A process
   * that is suspended is not dead: its kernel acknowledges.
   */
  def dead(port: Int): Set[SocketAddress] = Seq("tcp", "tcp6").map(Path.of("/proc/self/net", _))
    .filter(Files.isReadable(_)).flatMap(Files.readAllLines(_).asScala.flatMap(dead(port, _))).toSet

  private[run] def dead(port: Int, line: String): Option[SocketAddress] =
    line.trim.split("\\s+") match {
      case Array(_, End(_, local), End(address, remote), _, _, _, sent, _, asked, _*)
          if number(local) == port && math.max(number(sent), asked.toInt) >= MostTries =>
        val bytes = ByteBuffer.allocate(address.length / 2).order(ByteOrder.nativeOrder)
        address.grouped(8).foreach(word => bytes.putInt(number(word)))
        Some(new InetSocketAddress(InetAddress.getByAddress(bytes.array), number(remote)))
      case _ => None
    }

  private val End = "([0-9A-F]+):([0-9A-F]{4})".r

  private def number(hex: String) = HexFormat.fromHexDigits(hex)
}
