package supply.testing

import java.io.{BufferedInputStream, BufferedOutputStream, DataInputStream, DataOutputStream, EOFException}
import java.net.{InetAddress, Socket, SocketAddress, SocketException}
import java.nio.charset.StandardCharsets.{US_ASCII, UTF_8}
import java.security.MessageDigest
import java.security.cert.X509Certificate
import java.util.Arrays
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec
import javax.net.ssl.{SSLContext, SSLException, SSLSocket, X509TrustManager}

/** A peer, or a client, of a hub: the bytes of docs/design/hub.md, written once more. */
final class HubSocket(address: InetAddress, port: Int, tls: Option[String] = None)
    extends AutoCloseable {
  private val plain = new Socket(address, port)
  plain.setSoTimeout(60000)
  private val socket = tls.fold(plain)(HubSocket.secured(plain, address, port, _))

  def local: SocketAddress = plain.getLocalSocketAddress

  /** SHA-256 of the hub's certificate, with TLS. */
  val certificate: Array[Byte] = socket match {
    case secured: SSLSocket => MessageDigest.getInstance("SHA-256").digest(
        secured.getSession.getPeerCertificates.head.getEncoded)
    case _ => Array.empty
  }
  val in = new DataInputStream(new BufferedInputStream(socket.getInputStream))
  val out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream))

  def bytes(count: Int): Array[Byte] = {
    val read = new Array[Byte](count)
    in.readFully(read)
    read
  }

  /** Greets, and returns the hub's status and random bytes. */
  def greet(role: Int, run: String, random: Array[Byte]): (Int, Array[Byte]) = {
    out.write("SUPPLYH1".getBytes(US_ASCII))
    out.writeByte(role)
    val name = run.getBytes(UTF_8)
    out.writeShort(name.length)
    out.write(name)
    out.write(random)
    out.flush()
    (in.readUnsignedByte(), bytes(32))
  }

  /** Greets and proves the key; false: there is no such run. */
  def meets(role: Int, run: String, key: Array[Byte]): Boolean = {
    val own = Array.tabulate[Byte](32)(i => (i + plain.getLocalPort).toByte)
    val (status, hub) = greet(role, run, own)
    if (status == 0) {
      out.write(HubSocket.hmac(key, "peer".getBytes(US_ASCII), hub, own, certificate))
      out.flush()
      assert(Arrays.equals(bytes(32),
          HubSocket.hmac(key, "hub".getBytes(US_ASCII), own, hub,
            certificate)))
    }
    status == 0
  }

  def send(flag: Int, part: Array[Byte]): Unit = {
    out.writeByte(flag)
    out.writeInt(part.length)
    out.write(part)
  }

  /** Sends a message of one piece. */
  def say(text: String): this.type = {
    send(0, text.getBytes(UTF_8))
    out.flush()
    this
  }

  def sayTo(peer: Int, text: String, flag: Int = 0): Unit = {
    out.writeInt(peer)
    send(flag, text.getBytes(UTF_8))
    out.flush()
  }

  /** The next piece for a peer. */
  def piece(): (Int, Array[Byte]) = (in.readUnsignedByte(), bytes(in.readInt()))

  /** The parts of the next message for a peer. */
  def message(): Iterator[Array[Byte]] = new Iterator[Array[Byte]] {
    private var isLast = false

    override def hasNext: Boolean = !isLast

    override def next(): Array[Byte] = {
      val (flag, part) = piece()
      isLast = flag == 0
      part
    }
  }

  /** The same as a text. */
  def heardText(): String = message().map(new String(_, UTF_8)).mkString

  /** The next piece for a client, with its bytes as a text. */
  def heard(): (Int, Int, String) = {
    val peer = in.readInt()
    val (flag, part) = piece()
    (peer, flag, new String(part, UTF_8))
  }

  /** Whether the connection is at its end. */
  def isEnded: Boolean =
    try in.read() < 0
    catch { case _: SocketException | _: SSLException | _: EOFException => true }

  /** Ends it without a word, as the kernel does it for a process that is killed. */
  def kill(): Unit = {
    plain.setSoLinger(true, 0)
    plain.close()
  }

  override def close(): Unit = plain.close()
}

object HubSocket {
  final val Peer = 0
  final val Client = 1
  final val File = 2
  final val Place = 3
  final val Link = 4

  def hmac(key: Array[Byte], parts: Array[Byte]*): Array[Byte] = {
    val mac = Mac.getInstance("HmacSHA256")
    mac.init(new SecretKeySpec(key, "HmacSHA256"))
    parts.foreach(mac.update)
    mac.doFinal()
  }

  private def secured(plain: Socket, address: InetAddress, port: Int, protocol: String): Socket = {
    val anybody = new X509TrustManager {
      def checkClientTrusted(chain: Array[X509Certificate], kind: String): Unit = ()
      def checkServerTrusted(chain: Array[X509Certificate], kind: String): Unit = ()
      def getAcceptedIssuers: Array[X509Certificate] = Array.empty
    }
    val context = SSLContext.getInstance(protocol)
    context.init(null, Array(anybody), null)
    val socket = context.getSocketFactory.createSocket(plain, address.getHostAddress, port, true)
      .asInstanceOf[SSLSocket]
    socket.setEnabledProtocols(Array(protocol))
    socket.startHandshake()
    socket
  }

  /** One that has proved the key, and to which the hub has. tls: its version. */
  def of(address: InetAddress, port: Int, role: Int, run: String, key: Array[Byte],
      tls: Option[String] = None): HubSocket = {
    val socket = new HubSocket(address, port, tls)
    assert(socket.meets(role, run, key))
    socket
  }
}
