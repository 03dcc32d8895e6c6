package supply.offload

import java.io.IOException
import java.net.{StandardProtocolFamily, UnixDomainSocketAddress}
import java.nio.ByteBuffer
import java.nio.channels.{SelectionKey, Selector, SocketChannel}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}
import java.nio.file.attribute.UserPrincipal

import jdk.net.ExtendedSocketOptions.SO_PEERCRED

import supply.core.{ContractException, Deadline}

/**
 * One command to one rank, by the socket beside its mapped file. Never waits: [[NodeCommand]] waits
 * for all ranks of a node. showProgress: see [[AnswerReader]].
 */
private[offload] final class RankSocket(val rank: Int, path: String, command: Command,
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
