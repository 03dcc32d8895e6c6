package supply.pair

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8

import supply.core.ContractException
import supply.net.Connection
import supply.protocol.Layout
import supply.protocol.Layout.{Constant, LinkNotice, LinkRequest}

/** Frames over a rank's connection. One thread reads; another may send. */
private[pair] final class LinkConnection(val connection: Connection) {
  import LinkConnection._

  private val head = NamedPipe.buffer(LinkNotice.SIZE)
  private lazy val chunk = new Array[Byte](ChunkBytes)

  /** Sends all of `payload`, from direct memory without a copy. An IOException if the connection ends. */
  def send(kind: Int, payload: ByteBuffer*): Unit = {
    head.clear()
    head.putInt(LinkNotice.kind, kind).putInt(LinkNotice.payloadBytes,
      payload.map(_.remaining).sum)
    val all = (head +: payload).toArray
    connection.channel match {
      case Some(channel) => while (all.exists(_.hasRemaining)) channel.write(all)
      case None =>
        all.foreach { part =>
          while (part.hasRemaining) {
            val bytes = math.min(part.remaining, chunk.length)
            part.get(chunk, 0, bytes)
            connection.out.write(chunk, 0, bytes)
          }
        }
        connection.out.flush()
    }
  }

  /** Sends a text, of which so much comes as the rank has place for. */
  def send(kind: Int, text: String): Unit = {
    val bytes = ByteBuffer.allocate(Layout.FailureTextBytes)
    supply.protocol.Text.write(bytes, 0, bytes.capacity, text)
    send(kind, bytes.limit(bytes.array.indexOf(0.toByte)))
  }

  /** The next frame. A ContractException if it is longer than its kind allows: nothing is read then. */
  def read(): Frame = {
    val head = ByteBuffer.wrap(connection.readBytes(LinkRequest.SIZE)).order(
      ByteOrder.LITTLE_ENDIAN)
    val (kind, bytes) = head.getInt(LinkRequest.kind) -> head.getInt(LinkRequest.payloadBytes)
    if (bytes < 0 || bytes > mostBytes(kind)) throw new ContractException(
      s"a request of kind $kind has ${Integer.toUnsignedString(bytes)} bytes, which proto/PROTOCOL.md does not allow")
    Frame(kind, head.getLong(LinkRequest.released), head.getLong(LinkRequest.acknowledged),
      connection.readBytes(bytes))
  }
}

private[pair] object LinkConnection {
  private final val ChunkBytes = 1 << 16

  final case class Frame(kind: Int, released: Long, acknowledged: Long, payload: Array[Byte]) {
    def text: String = new String(payload, UTF_8)
  }

  private def mostBytes(kind: Int): Int = kind match {
    case Constant.LINK_OPEN => LinkOpening.Least + Constant.LINK_NAME_BYTES_MAX
    case Constant.LINK_STOP | Constant.LINK_RESULT_ABORT => Layout.FailureTextBytes
    case Constant.LINK_RESULT => Constant.LINK_NAME_BYTES_MAX
    case Constant.LINK_RESULT_BYTES => Constant.LINK_PIECE_BYTES_MAX
    case Constant.LINK_CREDIT | Constant.LINK_RESULT_SEAL => 0
    case _ => -1
  }
}
