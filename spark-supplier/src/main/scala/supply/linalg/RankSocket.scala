package supply.linalg

import java.io.{ByteArrayOutputStream, IOException}
import java.net.{StandardProtocolFamily, UnixDomainSocketAddress}
import java.nio.ByteBuffer
import java.nio.channels.{SelectionKey, Selector, SocketChannel}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.attribute.UserPrincipal
import java.nio.file.{Files, Paths}
import java.util.{Arrays, UUID}

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.node.ObjectNode
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import jdk.net.ExtendedSocketOptions.SO_PEERCRED

import supply.core.{ContractException, Deadline}

/**
 * One command to one rank, by the socket beside its mapped file. Never waits: [[NodeCommand]] waits
 * for all ranks of a node. showProgress: see [[AnswerReader]].
 */
private[linalg] final class RankSocket(val rank: Int, path: String, command: Command,
    timeout: Double, showProgress: Double => Unit) extends AutoCloseable {
  private val deadline = new Deadline(timeout)
  private val unsent = ByteBuffer.wrap(s"${command.line}\n".getBytes(UTF_8))
  private val received = new AnswerReader(command.dataMax, showProgress)
  private var channel: SocketChannel = _
  private var lost = Option.empty[Answer]

  /** What the rank answered; None: nothing yet. */
  def answer: Option[Answer] = received.answer.orElse(lost)

  def open(selector: Selector): Unit =
    try {
      channel = SocketChannel.open(StandardProtocolFamily.UNIX)
      channel.configureBlocking(false)
      channel.connect(UnixDomainSocketAddress.of(path))
      requireOwn(channel.getOption(SO_PEERCRED).user)
      channel.register(selector, SelectionKey.OP_WRITE, this)
      ()
    } catch {
      case e: IOException =>
        lose(s"has no supply-server at $path (${e.getMessage}): it has ended, " +
          "or was never started with these config files")
    }

  /** In a sticky folder, another user can make a socket of the name that a dead rank has left. */
  private def requireOwn(user: UserPrincipal): Unit =
    if (user != RankSocket.self)
      throw new IOException(s"the socket is of $user, and this executor runs as ${RankSocket.self}")

  /** Sends what it can, and takes what has come. */
  def proceed(key: SelectionKey, buffer: ByteBuffer): Unit = {
    try {
      if (key.isWritable) send(key)
      if (key.isReadable) read(buffer)
    } catch {
      case e: IOException => lose(s"has ended (${e.getMessage})")
      case e: ContractException => lose(s"has sent ${e.getMessage}: is it a supply-server?")
    }
    if (answer.isDefined) key.cancel()
  }

  private def send(key: SelectionKey): Unit = {
    channel.write(unsent)
    if (!unsent.hasRemaining) key.interestOps(SelectionKey.OP_READ)
    ()
  }

  private def read(buffer: ByteBuffer): Unit = {
    buffer.clear()
    if (channel.read(buffer) < 0) lose("has ended: its last words are in the output of mpirun")
    else {
      deadline.restart()
      buffer.flip()
      received.take(buffer)
    }
  }

  def checkDeadline(): Unit = if (answer.isEmpty && deadline.passed)
    lose(f"has not answered for ${deadline.seconds}%.0f s: raise timeout if its node is that busy",
      isTimeout = true)

  /** Stops waiting for the rank, unless it has answered. */
  def lose(text: String, isTimeout: Boolean = false): Unit =
    lost = lost.orElse(Some(Answer.Lost(s"rank $rank $text", isTimeout = isTimeout)))

  override def close(): Unit = if (channel != null) channel.close()
}

private object RankSocket {
  /** The user of this JVM's process. Java's properties may name another one. */
  private lazy val self: UserPrincipal = Files.getOwner(Paths.get("/proc/self"))
}

/**
 * One command to all ranks of a supply-server: a line of JSON. A retried task sends the same.
 * dataMax: the most bytes of data that a rank may answer with.
 */
private[linalg] final case class Command(line: String, dataMax: Long)

private[linalg] object Command {
  private val json = new ObjectMapper

  def of(name: String, dataMax: Long)(fill: ObjectNode => Unit): Command = {
    val command = json.createObjectNode()
    command.put("command", name).put("id", UUID.randomUUID().toString)
    fill(command)
    Command(json.writeValueAsString(command), dataMax)
  }
}

/** What one rank answered. */
private[linalg] sealed trait Answer extends Serializable

private[linalg] object Answer {
  /** line: JSON, what follows "done". data: the bytes that followed. */
  final case class Done(line: String, data: Array[Byte]) extends Answer

  /** text: why the rank, or all of them, could not do it. */
  final case class Failed(text: String) extends Answer

  /** The rank is gone, or does not answer. isOwnText: its last words, not what its end looks like. */
  final case class Lost(text: String, isOwnText: Boolean = false, isTimeout: Boolean = false)
      extends Answer
}

/**
 * Takes the answer of a rank as its bytes come: lines of JSON, and data after the last one. What a
 * rank sends is checked, and takes no more memory than it has sent. dataMax: the most bytes of data
 * that the command may be answered with. showProgress: gets how much of a routine is done, from 0 to
 * 1; these lines are also heartbeats.
 */
private[linalg] final class AnswerReader(dataMax: Long, showProgress: Double => Unit) {
  import AnswerReader._

  private val line = new ByteArrayOutputStream
  private var done = Option.empty[JsonNode]
  private var data = Array.emptyByteArray
  private var dataRead, dataBytes = 0

  /** None: it has not ended yet. */
  var answer = Option.empty[Answer]

  /** Takes what is in the buffer. Throws a ContractException if it is no answer. */
  def take(buffer: ByteBuffer): Unit = while (buffer.hasRemaining && answer.isEmpty) {
    if (done.isDefined) takeData(buffer) else takeByte(buffer.get())
  }

  private def takeByte(byte: Byte): Unit =
    if (byte == '\n') takeLine(parsed())
    else if (line.size < lineMax) line.write(byte)
    else throw new ContractException(s"a line of more than $lineMax bytes")

  private def parsed(): JsonNode =
    // Given bytes, Jackson would guess their encoding.
    try json.readTree(line.toString(UTF_8))
    catch {
      case e: JsonProcessingException =>
        throw new ContractException(s"a line that is not JSON (${e.getOriginalMessage})")
    } finally line.reset()

  private def takeLine(content: JsonNode): Unit =
    if (content.has("progress")) showProgress(content.get("progress").asDouble)
    else if (content.has("error")) {
      val text = content.get("error").asText
      answer =
        Some(if (content.has("ended")) Answer.Lost(text, isOwnText = true) else Answer.Failed(text))
    } else if (content.has("done")) beginData(content.get("done"))
    else throw new ContractException("a line that is neither progress, nor an error, nor done")

  private def beginData(content: JsonNode): Unit = {
    val bytes = content.path("bytes").asLong
    if (bytes < 0 || bytes > dataMax)
      throw new ContractException(s"$bytes bytes of data, where at most $dataMax are expected")
    dataBytes = bytes.toInt
    done = Some(content)
    finishData()
  }

  private def takeData(buffer: ByteBuffer): Unit = {
    val count = math.min(buffer.remaining, dataBytes - dataRead)
    if (dataRead + count > data.length) {
      val room = math.max(dataRead.toLong + count, 2L * data.length)
      data = Arrays.copyOf(data, math.min(room, dataBytes.toLong).toInt)
    }
    buffer.get(data, dataRead, count)
    dataRead += count
    finishData()
  }

  private def finishData(): Unit =
    if (dataRead == dataBytes) answer = Some(Answer.Done(done.get.toString, data))
}

private object AnswerReader {
  private val json = new ObjectMapper
  private val lineMax = 1 << 20
}
