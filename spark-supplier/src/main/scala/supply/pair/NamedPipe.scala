package supply.pair

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.{ClosedChannelException, FileChannel}
import java.nio.file.{NoSuchFileException, Path, StandardOpenOption}
import java.nio.file.StandardOpenOption.{READ, WRITE}

import scala.util.Using

import supply.core.Deadline
import supply.protocol.{Layout, Notification, Request}

/**
 * The task's ends of the two pipes. Opening a pipe blocks, uninterruptibly, until its other end is
 * open. So each pipe is first opened for both directions, which never blocks, and the extra end is
 * closed. From then on the kernel reports it when the rank dies.
 */
private[supply] object NamedPipe {
  private def open(path: Path, group: Option[String], end: StandardOpenOption,
      isOfFailure: Boolean = false): FileChannel =
    Using.resource(PairFile.find(path, PairFile.Pipe, group, isOfFailure)) { pipe =>
      Using.resource(pipe.open(READ, WRITE))(_ => pipe.open(end))
    }

  /** `group`: as for MappedFile.open, here and below. */
  def openRequests(path: Path, group: Option[String]): RequestPipe =
    new RequestPipe(() => open(path, group, READ))

  def openNotifications(
      path: Path, group: Option[String], isOfFailure: Boolean = false): NotificationPipe =
    new NotificationPipe(() => open(path, group, WRITE, isOfFailure))

  private[supply] def buffer(bytes: Int): ByteBuffer =
    ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN)
}

/** One end of a pipe, whose calls have a deadline. For one thread. */
private[supply] final class PipeEnd(open: () => FileChannel) extends AutoCloseable {
  import PipeEnd._

  private var channel = open()
  private var timedOut = false
  private val guard = new Deadline.Guard({ timedOut = true; channel.close() })

  /**
   * None: the deadline has passed, and a second, short try changed nothing: a process that was
   * suspended past it still finds what is there, or that the rank is gone. Nothing is lost: the rank
   * keeps the pipe open.
   */
  def apply[A](deadline: Deadline)(call: FileChannel => A): Option[A] =
    attempt(deadline)(call).orElse(attempt(new Deadline(SecondTrySeconds))(call))

  private def attempt[A](deadline: Deadline)(call: FileChannel => A): Option[A] = {
    if (timedOut) {
      channel = open()
      timedOut = false
    }
    try Some(guard(deadline)(call(channel)))
    catch { case _: ClosedChannelException if timedOut => None }
  }

  override def close(): Unit =
    try guard.close()
    finally channel.close()
}

private object PipeEnd {
  private final val SecondTrySeconds = 0.1
}

/** rank → task. For one thread. */
private[supply] trait Requests extends AutoCloseable {
  /** The next request. Waits for it until the deadline. */
  def read(deadline: Deadline): RequestPipe.Outcome
}

private[supply] final class RequestPipe private[supply] (
    open: () => FileChannel) extends Requests {
  import RequestPipe._

  private val end = new PipeEnd(open)
  private val buffer = NamedPipe.buffer(64 * Layout.Request.SIZE)
  buffer.limit(0)

  override def read(deadline: Deadline): Outcome = {
    val missing = if (buffer.remaining() < Layout.Request.SIZE) fill(deadline) else None
    missing.getOrElse(next())
  }

  private def next(): Outcome = {
    val request = Request.read(buffer, buffer.position())
    buffer.position(buffer.position() + Layout.Request.SIZE)
    Received(request)
  }

  /** Reads at least one request into the buffer, or returns why there is none. */
  private def fill(deadline: Deadline): Option[Outcome] = {
    buffer.compact()
    try {
      while (buffer.position() < Layout.Request.SIZE) {
        end(deadline)(_.read(buffer)) match {
          case None => return Some(TimedOut)
          case Some(bytes) => if (bytes < 0) return Some(EndOfFile)
        }
      }
      None
    } catch { case _: NoSuchFileException => Some(EndOfFile) }
    finally buffer.flip()
  }

  override def close(): Unit = end.close()
}

private[supply] object RequestPipe {
  sealed trait Outcome
  final case class Received(request: Request) extends Outcome

  /** No rank has the pipe open any more. */
  case object EndOfFile extends Outcome
  case object TimedOut extends Outcome
}

/** task → rank. For one thread. */
private[supply] trait Notifications extends AutoCloseable {
  /** False: the rank does not take it. An IOException if the rank is gone. */
  def write(notification: Notification, deadline: Deadline): Boolean

  /** Whether the rank has all blocks of earlier attempts, so that it needs no second notification. */
  def hasAll: Boolean = false

  /** Sends what is in the header. A rank that has the same memory sees it. */
  def flush(): Unit = ()
}

private[supply] final class NotificationPipe private[supply] (
    open: () => FileChannel) extends Notifications {
  private val end = new PipeEnd(open)
  private val buffer = NamedPipe.buffer(Layout.Notification.SIZE)

  /** One atomic write; false: the pipe stayed full. */
  override def write(notification: Notification, deadline: Deadline): Boolean = {
    notification.write(buffer, 0)
    buffer.clear()
    end(deadline)(channel => while (buffer.hasRemaining) channel.write(buffer)).isDefined
  }

  override def close(): Unit = end.close()
}
