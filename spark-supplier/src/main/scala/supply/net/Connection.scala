package supply.net

import java.io.{BufferedInputStream, BufferedOutputStream, DataInputStream, DataOutputStream, IOException}
import java.net.{InetAddress, InetSocketAddress, Socket, SocketAddress}
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.SocketChannel
import java.nio.file.{Files, Path}
import java.security.MessageDigest
import java.util.HexFormat

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import jdk.net.ExtendedSocketOptions.{TCP_KEEPCOUNT, TCP_KEEPIDLE, TCP_KEEPINTERVAL}

/** A socket at a listener. Its methods never wait for TLS, but those that read and write. */
private[supply] final class Connection(socket: Socket, tls: Option[Tls]) extends AutoCloseable {
  private lazy val secured = tls.map(_.over(socket))
  lazy val in = new DataInputStream(new BufferedInputStream(streams.getInputStream))
  lazy val out = new DataOutputStream(new BufferedOutputStream(streams.getOutputStream))

  private def streams = secured.getOrElse(socket)

  /** For writes from direct memory; None: TLS must encrypt what is written. */
  def channel: Option[SocketChannel] = if (tls.isDefined) None else Option(socket.getChannel)

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
    try secured.foreach(_.startHandshake())
    catch { case e: IOException => endOutput(); drain(); throw e }
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

  /** Reads up to the end: else the kernel would drop what the other side has not read yet. */
  def drain(): Unit = {
    val bytes = new Array[Byte](1 << 13)
    while (socket.getInputStream.read(bytes) >= 0) {}
  }

  override def close(): Unit =
    try socket.close()
    catch { case NonFatal(_) => () }

  /** The other end's address. */
  def host: String = socket.getInetAddress.getHostAddress

  override def toString: String = s"a connection from $host"
}

private[supply] object Connection {
  /** If data, or a question for space, was sent again so often, nothing has come back for about a minute. */
  private final val MostTries = 8

  /**
   * The other ends of the connections of that port that are dead, as Linux shows them. While sent
   * data is not acknowledged, keepalive does nothing, and Java has no TCP_USER_TIMEOUT. A process
   * that is suspended is not dead: its kernel acknowledges.
   */
  def dead(port: Int): Set[SocketAddress] = Seq("tcp", "tcp6").map(Path.of("/proc/self/net", _))
    .filter(Files.isReadable(_)).flatMap(Files.readAllLines(_).asScala.flatMap(dead(port, _))).toSet

  private[supply] def dead(port: Int, line: String): Option[SocketAddress] =
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
