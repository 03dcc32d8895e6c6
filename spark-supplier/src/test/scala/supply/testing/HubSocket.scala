package supply.testing

import java.io.{BufferedInputStream, BufferedOutputStream, DataInputStream, DataOutputStream}
import java.net.{InetAddress, Socket}
import java.nio.charset.StandardCharsets.{US_ASCII, UTF_8}
import java.util.Arrays
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

/** A peer, or a client, of a hub: the bytes of docs/design/hub.md, written once more. */
final class HubSocket(address: InetAddress, port: Int) extends AutoCloseable {
  private val socket = new Socket(address, port)
  socket.setSoTimeout(60000)
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

  /** The next piece for a client, with its bytes as a text. */
  def heard(): (Int, Int, String) = {
    val peer = in.readInt()
    val (flag, part) = piece()
    (peer, flag, new String(part, UTF_8))
  }

  /** Whether the connection is at its end. */
  def isEnded: Boolean =
    try in.read() < 0
    catch { case _: java.net.SocketException => true }

  /** Ends it without a word, as the kernel does it for a process that is killed. */
  def kill(): Unit = {
    socket.setSoLinger(true, 0)
    socket.close()
  }

  override def close(): Unit = socket.close()
}

object HubSocket {
  final val Peer = 0
  final val Client = 1

  def hmac(key: Array[Byte], parts: Array[Byte]*): Array[Byte] = {
    val mac = Mac.getInstance("HmacSHA256")
    mac.init(new SecretKeySpec(key, "HmacSHA256"))
    parts.foreach(mac.update)
    mac.doFinal()
  }

  /** One that has proved the key, and to which the hub has. */
  def of(address: InetAddress, port: Int, role: Int, run: String, key: Array[Byte]): HubSocket = {
    val socket = new HubSocket(address, port)
    val own = Array.tabulate[Byte](32)(i => (i + port).toByte)
    val (status, hub) = socket.greet(role, run, own)
    assert(status == 0)
    socket.out.write(hmac(key, "peer".getBytes(US_ASCII), hub, own))
    socket.out.flush()
    assert(Arrays.equals(socket.bytes(32), hmac(key, "hub".getBytes(US_ASCII), own, hub)))
    socket
  }
}
