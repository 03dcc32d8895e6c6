package supply.offload

import java.io.{ByteArrayOutputStream, IOException}
import java.net.{StandardProtocolFamily, UnixDomainSocketAddress}
import java.nio.ByteBuffer
import java.nio.channels.{SelectionKey, Selector, SocketChannel}
import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

import supply.core.Deadline

/**
 * One command to one rank, by the socket beside its mapped file. Never waits: [[NodeCommand]] waits
 * for all ranks of a node.
 */
private[offload] final class RankSocket(val rank: Int, path: String, command: Command,
    timeout: Double) extends AutoCloseable {
  import RankSocket._

  private val deadline = new Deadline(timeout)
  private val line = new ByteArrayOutputStream
  private var done = Option.empty[JsonNode]
  private var data = ByteBuffer.allocate(0)

  /** What the rank answered; None: nothing yet. */
  var answer = Option.empty[Answer]

  private var channel: SocketChannel = _

  def open(selector: Selector): Unit =
    try {
      channel = SocketChannel.open(StandardProtocolFamily.UNIX)
      channel.connect(UnixDomainSocketAddress.of(path))
      channel.write(ByteBuffer.wrap(s"${command.line}\n".getBytes(UTF_8)))
      channel.configureBlocking(false)
      channel.register(selector, SelectionKey.OP_READ, this)
      ()
    } catch {
      case e: IOException =>
        lose(s"has no supply-server at $path (${e.getMessage}): it has ended, " +
          "or was never started with these config files")
    }

  /** Takes what has come. */
  def read(buffer: ByteBuffer): Unit =
    try {
      buffer.clear()
      if (channel.read(buffer) < 0) lose("has ended: its last words are in the output of mpirun")
      else {
        deadline.restart()
        buffer.flip()
        while (buffer.hasRemaining && answer.isEmpty) take(buffer)
      }
    } catch { case e: IOException => lose(s"has ended (${e.getMessage})") }

  private def take(buffer: ByteBuffer): Unit = if (done.isDefined) takeData(buffer)
  else {
    val byte = buffer.get()
    if (byte != '\n') line.write(byte) else takeLine(json.readTree(line.toByteArray))
  }

  private def takeLine(content: JsonNode): Unit = {
    line.reset()
    // Others say how much of a routine is done. They are heartbeats here.
    if (content.has("error")) {
      val text = content.get("error").asText
      answer =
        Some(if (content.has("ended")) Answer.Lost(text, isOwnText = true) else Answer.Failed(text))
    }
    if (content.has("done")) {
      done = Some(content.get("done"))
      data = ByteBuffer.allocate(content.get("done").path("bytes").asInt)
      finishData()
    }
  }

  private def takeData(buffer: ByteBuffer): Unit = {
    val part = buffer.slice()
    part.limit(math.min(part.remaining, data.remaining))
    buffer.position(buffer.position() + part.remaining)
    data.put(part)
    finishData()
  }

  private def finishData(): Unit =
    if (!data.hasRemaining) answer = Some(Answer.Done(done.get.toString, data.array))

  def checkDeadline(): Unit = if (answer.isEmpty && deadline.passed)
    lose(s"has not answered for ${deadline.seconds} s: raise timeout if its node is that busy")

  private def lose(text: String): Unit =
    if (answer.isEmpty) answer = Some(Answer.Lost(s"rank $rank $text"))

  override def close(): Unit = if (channel != null) channel.close()
}

private[offload] object RankSocket {
  private val json = new ObjectMapper
}
