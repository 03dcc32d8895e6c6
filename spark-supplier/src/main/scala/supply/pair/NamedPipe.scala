package supply.pair

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.FileChannel
import java.nio.file.{Path, StandardOpenOption}
import java.nio.file.StandardOpenOption.{READ, WRITE}

import scala.util.Using

import supply.core.Deadline
import supply.protocol.{Layout, Notification, Request}

/**
 * The task's ends of the two pipes. Opening a pipe blocks, uninterruptibly, until its other end is
 * there; so each is first opened for both directions, which never blocks, and the extra end is
 * dropped. From then on the kernel tells when the rank dies.
 */
object NamedPipe {

  private def open(path: Path, group: Option[String], end: StandardOpenOption): FileChannel =
    Using.resource(PairFile.find(path, PairFile.Pipe, group)) { pipe =>
      Using.resource(pipe.open(READ, WRITE))(_ => pipe.open(end))
    }

  /** group: as for MappedFile.open, here and below. */
  def openRequests(path: Path, group: Option[String]): RequestPipe =
    new RequestPipe(open(path, group, READ))

  def openNotifications(path: Path, group: Option[String]): NotificationPipe =
    new NotificationPipe(open(path, group, WRITE))

  private[pair] def record(bytes: Int): ByteBuffer =
    ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN)
}

/** rank → task. For one thread. */
final class RequestPipe(channel: FileChannel) extends AutoCloseable {
  private val buffer = NamedPipe.record(64 * Layout.Request.SIZE)
  @volatile private var timedOut = false
  private val guard = new Deadline.Guard({ timedOut = true; channel.close() })
  buffer.limit(0)

  /**
   * The next request, waiting for it until the limit: None at the end of file (no rank has the pipe
   * open any more). After a time-out the pipe is closed.
   */
  def read(limit: Deadline): RequestPipe.Outcome = {
    if (buffer.remaining() < Layout.Request.SIZE && !fill(limit)) {
      if (timedOut) RequestPipe.TimedOut else RequestPipe.EndOfFile
    } else {
      val request = Request.read(buffer, buffer.position())
      buffer.position(buffer.position() + Layout.Request.SIZE)
      RequestPipe.Received(request)
    }
  }

  private def fill(limit: Deadline): Boolean = {
    buffer.compact()
    try {
      while (buffer.position() < Layout.Request.SIZE) {
        val n = guard(limit)(channel.read(buffer))
        if (n < 0) return false
      }
      true
    } catch { case _: java.nio.channels.ClosedChannelException if timedOut => false }
    finally buffer.flip()
  }

  override def close(): Unit = channel.close()
}

object RequestPipe {
  sealed trait Outcome
  final case class Received(request: Request) extends Outcome
  case object EndOfFile extends Outcome
  case object TimedOut extends Outcome
}

/** task → rank. For one thread. */
final class NotificationPipe(channel: FileChannel) extends AutoCloseable {
  private val buffer = NamedPipe.record(Layout.Notification.SIZE)
  @volatile private var timedOut = false
  private val guard = new Deadline.Guard({ timedOut = true; channel.close() })

  /**
   * One write of less than PIPE_BUF: atomic. True when it is in the pipe; false where the pipe has
   * been full until the limit: then it is closed. An IOException if the rank is gone.
   */
  def write(notification: Notification, limit: Deadline): Boolean = {
    notification.write(buffer, 0)
    buffer.clear()
    try {
      guard(limit)(while (buffer.hasRemaining) channel.write(buffer))
      true
    } catch { case _: java.nio.channels.ClosedChannelException if timedOut => false }
  }

  override def close(): Unit = channel.close()
}
