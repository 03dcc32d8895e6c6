package supply.pair

import java.io.IOException
import java.nio.channels.ClosedByInterruptException
import java.nio.file.Paths
import java.util.Arrays
import java.util.concurrent.locks.ReentrantLock

import scala.util.control.NonFatal

import supply.core.{ContractException, Deadline, PairHeldException, SupplyException, Threads}
import supply.net.Connection
import supply.protocol.{Layout, Notification, Request}
import supply.protocol.Layout.{Constant, MappedFileHeader => At}

/**
 * The task's end of a pair whose rank is elsewhere (proto/PROTOCOL.md, "A pair over a connection"). The
 * task publishes into a mirror of the rank's ring; what is published goes over the rank's connection, at
 * once or when the rank has connected again, within `reconnectSeconds`.
 *
 * The task's thread sends, or one that catches up for a new connection: who has the lock of [[sending]], which
 * is taken before the link's own. The thread of a connection only reads: a rank may send much before it reads.
 */
private[supply] final class Link private[pair] (val of: Link.Of, val key: Array[Byte],
    paths: PairPaths, reconnectSeconds: Double, kept: String => Unit, server: LinkServer)
    extends Requests with Notifications {
  import Link._

  val name: String = s"link of rank ${of.rank}"
  private val senders = new ReentrantLock
  private val results = new LinkResults(paths, kept)
  @volatile private var current = Option.empty[Sender]
  private var memory: LinkMemory = _
  @volatile private var mirror = Option.empty[MappedFile]
  private val lost = new Deadline(reconnectSeconds)
  private var isReleased, hasStopped = false
  @volatile private var isClosed = false
  @volatile private var broken = Option.empty[SupplyException]

  // For the task.

  /** The mirror of the rank that has connected. */
  def file: Option[MappedFile] = {
    broken.foreach(throw _)
    mirror
  }

  def rankLives: Boolean = synchronized(current.isDefined || !lost.passed)

  override def hasAll: Boolean = true

  override def flush(): Unit =
    sending(current.foreach(sender =>
        sender.trying(new Deadline(reconnectSeconds))(sender.catchUp())))

  /** A rank that has lost its connection gets it later. */
  override def write(notification: Notification, deadline: Deadline): Boolean = {
    broken.foreach(throw _)
    sending(current.foreach(_.sendNew(deadline)))
    true
  }

  override def read(deadline: Deadline): RequestPipe.Outcome = synchronized {
    var outcome = next(deadline)
    while (outcome.isEmpty) {
      val nanos = Seq(deadline.remainingNanos,
        if (current.isEmpty) lost.remainingNanos
        else Long.MaxValue).min
      wait(math.max(1, math.min(nanos / 1000000, MostMillis)))
      outcome = next(deadline)
    }
    outcome.get
  }

  private def next(deadline: Deadline): Option[RequestPipe.Outcome] = {
    broken.foreach(throw _)
    def received(kind: Int) = Some(RequestPipe.Received(Request(mirror.get.generation, kind)))
    val wasReleased = isReleased
    isReleased = false
    if (wasReleased) received(Constant.REQUEST_RELEASE)
    else if (hasStopped) received(Constant.REQUEST_STOP)
    else if (!rankLives) {
      mirror.get.rankFailure =
        f"its connection is lost, and it has not come back within $reconnectSeconds%.0f s (--reconnect-timeout)"
      Some(RequestPipe.EndOfFile)
    } else if (deadline.passed) Some(RequestPipe.TimedOut)
    else None
  }

  /** Tells the rank that its task leaves, after all that is in the header. */
  override def close(): Unit = if (server.forget(this)) Threads.uninterrupted {
    sending {
      current.foreach(sender =>
        sender.trying(new Deadline(CloseSeconds)) {
          sender.catchUp()
          sender.link.send(Constant.LINK_LEFT)
          sender.link.connection.endOutput()
        })
      synchronized {
        isClosed = true
        current.foreach(sender => server.closeLater(sender.link.connection))
        current = None
        if (memory != null) memory.free()
      }
    }
    results.close()
  }

  private def sending[A](body: => A): A = {
    senders.lockInterruptibly()
    try body
    finally senders.unlock()
  }

  // For the thread of a connection.

  /** Serves a rank that has connected, until its connection ends. */
  private[pair] def serve(link: LinkConnection, opening: LinkOpening): Unit = {
    // Who sends to the lost connection of this rank has the lock.
    current.filter(_.generation == opening.generation).foreach(_.end())
    sending(accept(link, opening)) match {
      case Some((kind, text)) => server.refuse(link, kind, text)
      case None =>
        results.close()
        server.execute(sending(ofCurrent(link) { sender =>
          val deadline = new Deadline(reconnectSeconds)
          sender.trying(deadline)(sender.catchUp(deadline.restart()))
        }))
        try while (!isClosed) take(link)
        finally drop(link)
        link.connection.drain()
    }
  }

  private def ofCurrent(link: LinkConnection)(body: Sender => Unit): Unit =
    current.filter(_.link eq link).foreach(body)

  /** None: the rank has what it needs. */
  private def accept(link: LinkConnection, opening: LinkOpening): Option[(Int, String)] = {
    val refused = synchronized(judge(link.connection, opening))
    if (refused.isEmpty) {
      val sender = new Sender(link, opening)
      current = Some(sender)
      sender.trying(new Deadline(reconnectSeconds))(link.send(Constant.LINK_ACCEPTED))
      synchronized(notifyAll())
    }
    refused
  }

  private def judge(connection: Connection, opening: LinkOpening): Option[(Int, String)] =
    mirror match {
      case _ if isClosed => Some(Constant.LINK_BUSY -> s"$name: its task has just left")
      case None => begin(opening)
      case Some(file) if file.generation == opening.generation =>
        if (opening.received > file.published) {
          fail(new PairHeldException(s"$name: another attempt has supplied it since"))
          Some(Constant.LINK_BUSY -> s"$name: another task has supplied it since")
        } else {
          credit(opening.released, opening.acknowledged)
          None
        }
      case Some(file) => current match {
          case Some(other) => Some(Constant.LINK_REFUSED ->
              (s"rank ${of.rank} is connected already, from ${other.link.connection.host} (process ${file.rankPid}), and this one is on " +
                s"${connection.host} (process ${opening.pid}): start each rank once"))
          case None => Some(Constant.LINK_BUSY ->
              s"$name: its task waits for the process ${file.rankPid} with which it has begun")
        }
    }

  /** The first connection. */
  private def begin(opening: LinkOpening): Option[(Int, String)] =
    try {
      val version = opening.fields.getInt(At.version)
      if (!Arrays.equals(opening.header.take(Layout.Magic.length), Layout.Magic))
        throw new ContractException(s"$name: what has connected is no rank: its magic is wrong")
      if (version != Layout.version)
        throw new ContractException(Attachment.otherVersion(name, version))
      LinkMemory.require(name, opening.fields)
      memory = new LinkMemory(this, opening)
      val file = new MappedFile(Paths.get(paths.mappedFile), memory)
      file.check()
      if (opening.received > 0) {
        val last = opening.received - 1
        file.slot(file.slotOf(last)).put(0, opening.lastBlock)
        file.notification(last)
      }
      mirror = Some(file)
      lost.restart()
      None
    } catch {
      case e: SupplyException =>
        fail(e)
        Some(Constant.LINK_REFUSED -> e.getMessage)
    }

  private def take(link: LinkConnection): Unit = {
    val frame = checked(link.read())
    synchronized(if (!isClosed) {
      requireCurrent(link)
      credit(frame.released, frame.acknowledged)
    })
    if (!isClosed) frame.kind match {
      case Constant.LINK_STOP => synchronized {
          if (!isClosed) mirror.get.rankFailure = frame.text
          hasStopped = true
          notifyAll()
        }
      case Constant.LINK_RESULT => keeping(link)(checked(results.begin(frame.text)))
      case Constant.LINK_RESULT_BYTES => keeping(link)(results.add(frame.payload))
      case Constant.LINK_RESULT_SEAL => answer(link, results.end(None))
      case Constant.LINK_RESULT_ABORT => answer(link, results.end(Some(frame.text)))
      case Constant.LINK_CREDIT => ()
      case _ => throw fail(new ContractException(s"$name: it opens its pair twice"))
    }
  }

  /** What the rank has sent wrongly ends the task. */
  private def checked[A](body: => A): A =
    try body
    catch {
      case e: ContractException => throw fail(new ContractException(s"$name: ${e.getMessage}"))
    }

  /** The results are those of one connection after the other. */
  private def keeping[A](link: LinkConnection)(body: => A): A = results.synchronized {
    requireCurrent(link)
    body
  }

  private def requireCurrent(link: LinkConnection): Unit = if (!current.exists(_.link eq link))
    throw new IOException("another connection has replaced this one, or the task has left")

  private def answer(link: LinkConnection, end: => String): Unit = {
    val text = keeping(link)(end)
    sending(ofCurrent(link)(
        _.trying(new Deadline(reconnectSeconds))(link.send(Constant.LINK_KEPT, text))))
  }

  /** C2 and C3. */
  private def credit(released: Long, acknowledged: Long): Unit = {
    val file = mirror.get
    for ((field, value) <- Seq("released" -> released, "acknowledged" -> acknowledged))
      if (value < 0 || value > file.published) throw fail(new ContractException(
          s"$name: its $field is ${java.lang.Long.toUnsignedString(value)}, with ${file.published} blocks published"))
    file.credit(released, acknowledged)
    isReleased = true
    notifyAll()
  }

  /** The task ends with this. */
  private def fail(cause: SupplyException): SupplyException = synchronized {
    if (broken.isEmpty) broken = Some(cause)
    notifyAll()
    cause
  }

  private def drop(link: LinkConnection): Unit = synchronized {
    current.filter(_.link eq link).foreach { sender =>
      sender.end()
      current = None
      lost.restart()
      notifyAll()
    }
  }

  /** What a connection has had. For who has the lock `sending`. */
  private final class Sender(val link: LinkConnection, opening: LinkOpening) {
    val generation: Long = opening.generation
    private var next = opening.received
    private var hasSchema = false
    private val header = NamedPipe.buffer(At.SIZE)
    private val had = new Array[Byte](TaskFields.size)
    private val now = new Array[Byte](TaskFields.size)
    private val guard = new Deadline.Guard(link.connection.close())

    /** If the connection ends, or the rank takes nothing until then, the rank must come again. */
    def trying(deadline: Deadline)(body: => Unit): Unit = {
      guard.close()
      try limited(deadline)(body)
      finally guard.close()
    }

    /** The check of the deadline stays scheduled for the next block. */
    def sendNew(deadline: Deadline): Unit = limited(deadline)(catchUp())

    private def limited(deadline: Deadline)(body: => Unit): Unit =
      try guard(deadline)(body)
      catch {
        case NonFatal(e) =>
          end()
          drop(link)
          e match {
            case own: ClosedByInterruptException => throw own
            case _: IOException if Thread.currentThread().isInterrupted =>
              throw new ClosedByInterruptException
            case _: IOException => ()
            case other => throw other
          }
      }

    def end(): Unit = {
      guard.close()
      link.connection.close()
    }

    /** Sends what the mirror has, and the rank has not. */
    def catchUp(progressed: => Unit = ()): Unit = {
      val file = mirror.get
      val end = file.published
      if (file.hasSchema && !hasSchema) {
        link.send(Constant.LINK_SCHEMA, memory.schema)
        Arrays.fill(had, 0: Byte)
        hasSchema = true
      }
      sendHeader()
      while (next < end) {
        val block = file.notification(next)
        link.send(Constant.LINK_BLOCK, file.slot(file.slotOf(next)).slice(0, block.size.toInt))
        next += 1
        progressed
      }
    }

    private def sendHeader(): Unit = {
      memory.header.get(TaskFields.head, now)
      if (!Arrays.equals(had, now)) {
        header.clear().put(0, memory.header, 0, At.SIZE)
        header.putLong(At.published, next)
        link.send(Constant.LINK_HEADER, header)
        System.arraycopy(now, 0, had, 0, now.length)
      }
    }
  }
}

private[supply] object Link {
  /** Which rank a task waits for. */
  final case class Of(run: String, data: String, rank: Int)

  /** What the task stores in a header, without `published`. */
  private val TaskFields = At.taskPid until At.taskFailure

  private final val CloseSeconds = 5.0

  /** Of one wait: how much Java counts at once. */
  private final val MostMillis = 3600000L
}
