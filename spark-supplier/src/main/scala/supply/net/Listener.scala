package supply.net

import java.io.IOException
import java.net.{BindException, InetAddress, InetSocketAddress, SocketAddress}
import java.nio.channels.ServerSocketChannel
import java.nio.charset.StandardCharsets.{US_ASCII, UTF_8}
import java.security.{MessageDigest, SecureRandom}
import java.util.concurrent.{ConcurrentHashMap, Executor, Future, RejectedExecutionException, Semaphore, SynchronousQueue, ThreadPoolExecutor, TimeUnit}
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

import scala.jdk.CollectionConverters._

import org.slf4j.LoggerFactory

import supply.core.Threads

/**
 * Takes connections of processes that prove a key: docs/design/hub.md has the bytes. Each gets a
 * thread. `name`: of threads and in the log.
 *
 * @param ports the first one that is free is taken; 0: any
 * @param find what connections of that role may name so, and its key; None: there is nothing
 * @param serve what to do with a connection of that role that has proved the key
 */
private[supply] final class Listener[A](bind: InetAddress, ports: Seq[Int], name: String,
    tls: Option[Tls], secondsOfStrangers: Double, find: (Int, String) => Option[(A, Array[Byte])],
    serve: (Int, A, Connection) => Unit) extends AutoCloseable {
  import Listener._

  private val server = listen(name, bind, ports)
  private val pool = threads(name)
  private val timer = Threads.scheduler(s"$name-timer")
  private val strangers = new Semaphore(MostStrangers)
  private val open = ConcurrentHashMap.newKeySet[Connection]()
  private val accepting = new Object
  private val local = server.getLocalAddress.asInstanceOf[InetSocketAddress]
  pool.execute(() => accept())
  every(10)(closeDead(Connection.dead(port)))

  def port: Int = local.getPort

  def address: InetAddress = local.getAddress

  def isTls: Boolean = tls.isDefined

  /** Daemon threads, as many as there is work; an error of work is logged. */
  def executor: Executor = pool

  def later(seconds: Double)(work: => Unit): Future[_] =
    timer.schedule((() => work): Runnable, (seconds * 1000).toLong, TimeUnit.MILLISECONDS)

  def every(seconds: Long)(check: => Unit): Unit = {
    timer.scheduleWithFixedDelay(() => Threads.logging(s"a check of $name")(check), seconds,
      seconds, TimeUnit.SECONDS)
    ()
  }

  /** Ends connections to nodes that are gone. */
  private[supply] def closeDead(ends: Set[SocketAddress]): Unit =
    if (ends.nonEmpty) open.asScala.filter(connection => ends(connection.remote)).foreach {
      connection =>
        log.warn(s"$connection is closed: its node does not acknowledge what was sent to it")
        connection.close()
    }

  /** Whoever finds it closed can listen at its port. */
  def stop(): Unit = {
    server.close()
    // The kernel keeps the port until accept() has returned.
    accepting.synchronized(())
  }

  /** Connections that are open end by themselves. */
  override def close(): Unit = {
    stop()
    timer.shutdown() // What waits for its time is still done.
    pool.shutdown()
  }

  private def accept(): Unit = while (server.isOpen) {
    strangers.acquire()
    try {
      val socket = accepting.synchronized(server.accept()).socket
      try pool.execute(() => pass(new Connection(socket, tls)))
      catch { case e: Throwable => socket.close(); throw e }
    } catch {
      case _: RejectedExecutionException => () // It has just been closed.
      case e: Throwable =>
        strangers.release()
        if (server.isOpen) {
          log.warn(s"$name cannot take a connection, and tries again", e)
          Thread.sleep(RetryMillis)
        }
    }
  }

  private def pass(connection: Connection): Unit =
    try {
      open.add(connection)
      val late = later(secondsOfStrangers)(connection.close())
      val met =
        try {
          connection.begin()
          meet(connection)
        } finally {
          late.cancel(false)
          strangers.release()
        }
      met.foreach { case (role, found) => serve(role, found, connection) }
    } finally {
      open.remove(connection)
      connection.close()
    }

  /** Returns the role of a connection, and what it has named, whose key it has proved. */
  private def meet(connection: Connection): Option[(Int, A)] = {
    import connection.{certificate, in, out, readBytes}
    val isOurs = readBytes(Magic.length).sameElements(Magic)
    val role = if (isOurs) in.readUnsignedByte() else -1
    if (role < 0 || role > MostRole) None
    else {
      val named = new String(readBytes(in.readUnsignedShort()), UTF_8)
      val found = find(role, named)
      val theirs = readBytes(KeyBytes)
      val own = random()
      out.writeByte(if (found.isDefined) 0 else NoSuchName)
      out.write(own)
      out.flush()
      found.filter { case (_, key) =>
        val isProven = MessageDigest.isEqual(readBytes(KeyBytes),
          proof(key, "peer".getBytes(US_ASCII), own, theirs, certificate))
        if (isProven) {
          out.write(proof(key, "hub".getBytes(US_ASCII), theirs, own, certificate))
          out.flush()
        } else log.warn(s"$connection does not know the key of the run $named")
        isProven
      }.map(role -> _._1)
    }
  }
}

private[supply] object Listener {
  private val log = LoggerFactory.getLogger("supply.net.Listener")

  private val Magic: Array[Byte] = "SUPPLYH1".getBytes(US_ASCII)

  /** Of keys, proofs, and the random bytes that they prove. */
  final val KeyBytes = 32

  final val Peer = 0
  final val Client = 1
  final val File = 2
  final val Place = 3
  final val Link = 4
  private final val MostRole = Link
  private final val NoSuchName = 1

  /** Connections that the kernel accepts for us. */
  private final val Waiting = 4096

  /** Connections that have not proved a key. More must wait. */
  private final val MostStrangers = 4096

  private final val RetryMillis = 100L
  private final val IdleSeconds = 10L

  private def listen(name: String, bind: InetAddress, ports: Seq[Int]): ServerSocketChannel = {
    val server = ServerSocketChannel.open()
    try server.bind(new InetSocketAddress(bind, ports.head), Waiting)
    catch {
      case e: Throwable =>
        server.close()
        e match {
          case _: BindException if ports.size > 1 =>
            log.warn(s"$name tries another port than ${ports.head}: $e")
            listen(name, bind, ports.tail)
          case _ => throw e
        }
    }
  }

  private val secure = new SecureRandom

  def random(): Array[Byte] = {
    val bytes = new Array[Byte](KeyBytes)
    secure.nextBytes(bytes)
    bytes
  }

  /** HMAC-SHA256: Java's, so that it is there in FIPS mode, too. */
  def proof(key: Array[Byte], parts: Array[Byte]*): Array[Byte] = {
    val mac = Mac.getInstance("HmacSHA256")
    mac.init(new SecretKeySpec(key, "HmacSHA256"))
    parts.foreach(mac.update)
    mac.doFinal()
  }

  private def threads(name: String): ThreadPoolExecutor =
    new ThreadPoolExecutor(0, Int.MaxValue, IdleSeconds, TimeUnit.SECONDS,
      new SynchronousQueue[Runnable],
      { (worker: Runnable) =>
        val thread = new Thread(worker, name)
        thread.setDaemon(true)
        thread
      }) {
      override def execute(work: Runnable): Unit = super.execute(() =>
        try work.run()
        catch {
          case e @ (_: IOException | _: InterruptedException | _: RejectedExecutionException) =>
            log.debug(s"a connection of $name has ended", e)
          case e: Throwable => log.warn(s"a connection of $name has failed", e)
        })
    }
}
