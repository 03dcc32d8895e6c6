package supply.pair

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.file.{Path, Paths}
import java.util.concurrent.ConcurrentHashMap

import scala.util.Using
import scala.util.control.ControlThrowable

import supply.core.{ConfigException, ContractException, FailPoint, PairException, PairHeldException, RankException, Deadline}
import supply.protocol.Layout.Constant
import supply.protocol.{Layout, Notification, Position, Schema}

/**
 * The task's side of a pair: attaches to what the rank has made, publishes blocks into slots that
 * the rank has released. Step names (A1, P1, …) are those of proto/PROTOCOL.md. For one thread.
 */
final class Pair private[pair] (
    val name: String,
    val paths: PairPaths,
    file: MappedFile,
    requests: RequestPipe,
    notifications: NotificationPipe,
    timeout: Double)
    extends AutoCloseable {

  private val blocks = new PublishedBlocks(name, file)
  private var sequence = file.published
  private var elementsBefore = 0L
  private var bytesBefore = 0L
  private val credit = new Credit(name, file, requests, timeout, sequence)
  private var closed = false

  /** Size of a slot. */
  def blockBytes: Int = file.blockBytes

  /** Rank in MPI_COMM_WORLD as the rank itself knows it, or -1. */
  def rank: Int = file.rank

  /** Time spent waiting for the rank to release a slot. */
  def waitedNanos: Long = credit.waitedNanos

  /**
   * What comes next: behind what this and earlier attempts have published, or else where the rank
   * wants to begin.
   */
  def position: Position = lastPublished.map(Position.after).getOrElse(start)

  /** Where the rank wants to begin. */
  def start: Position = file.start

  /** Whether END_OF_DATA is published: what is left is E1 to E3. */
  def isAtEnd: Boolean = lastPublished.exists(_.kind == Constant.NOTIFICATION_END_OF_DATA)

  private def lastPublished: Option[Notification] =
    if (sequence == 0) None else Some(blocks.copyOf(sequence - 1))

  /** Elements, and bytes of their blocks, that all attempts together have published. */
  def publishedElements: Long = elementsBefore

  def publishedBytes: Long = bytesBefore

  /** Tells the rank which columns its blocks will have. (A6) */
  def writeOrCheckSchema(schema: Schema): Unit = {
    file.writeOrCheckSchema(schema)
    FailPoint("A6")
  }

  /**
   * Tells the rank which plan its data follows; refuses a position that it has saved under another
   * one. (A6)
   */
  def bindPlan(fingerprint: Long): Unit = {
    if (file.startPlan != 0 && file.startPlan != fingerprint) {
      throw new ConfigException(
        s"$name: the rank wants to go on at a position that it saved in a run with other data or " +
          s"${Pair.PlanOptions}: give the same ones, or start the rank without the position")
    }
    if (sequence > 0 && file.plan != fingerprint) {
      throw new ConfigException(
        s"$name: another run has begun to supply this rank, with other data or " +
          s"${Pair.PlanOptions}: start the rank anew")
    }
    file.plan = fingerprint
  }

  /** The plan of what this rank has, or wants to go on behind; 0: of neither. */
  def plan: Long = if (sequence == 0) file.startPlan else file.plan

  def plan_=(fingerprint: Long): Unit = file.plan = fingerprint

  /** P1. The slot for the next block, once the rank has released it. The same until [[publish]]. */
  def nextSlot(): ByteBuffer = {
    if (!blocks.hasRoom(sequence)) throw Pair.NoRoomToStay
    slotOfNext()
  }

  private def slotOfNext(): ByteBuffer = {
    credit.await(sequence - file.blockCount + 1, sequence)
    file.slot(blocks.slotOf(blocks.place(sequence)))
  }

  /** Bytes of the whole ring. */
  def ringBytes: Long = file.blockCount.toLong * blockBytes

  /** The same of a ring in which so many blocks with elements may stay. */
  def ringBytesFor(blocks: Long): Long = (blocks + PublishedBlocks.EndSlots) * blockBytes

  /** The blocks that stay in their slots, once there is a whole epoch of them. */
  def resident: Option[ResidentBlocks] = blocks.resident

  /**
   * Lets the blocks of this epoch stay, of which this attempt publishes the first, or goes on with.
   * Where they become too many, [[nextSlot]] throws [[Pair.NoRoomToStay]].
   */
  def beginResident(epoch: Int): Unit = blocks.beginResident(epoch, sequence)

  /**
   * P2 to P4. Publishes the block whose columns stand in [[nextSlot]], `size` bytes with its
   * header, which is written here.
   */
  def publish(kind: Int, epoch: Int, partition: Int, firstElement: Long, elements: Int,
      columns: Int, size: Int): Unit = {
    val place = blocks.place(sequence)
    val notification =
      Notification(file.generation, kind, elements, sequence, epoch, partition, firstElement,
        file.slotOffset(blocks.slotOf(place)), size.toLong)
    val slot = slotOfNext()
    FailPoint("P1")
    slot.putInt(Layout.BlockHeader.columnCount, columns)
    slot.putLong(Layout.BlockHeader.elementsBefore, elementsBefore)
    slot.putLong(Layout.BlockHeader.bytesBefore, bytesBefore)
    notification.write(slot, Layout.BlockHeader.notification)
    if (place != sequence) blocks.record(sequence, place, epoch, elementsBefore, bytesBefore)
    if (kind == Constant.NOTIFICATION_END_OF_EPOCH) blocks.sealResident(sequence)
    announce(notification)
    if (kind == Constant.NOTIFICATION_END_OF_EPOCH) blocks.findResident(sequence)
  }

  /**
   * P1 to P4 for a block that stays: it gets another number and epoch, and nothing of it is
   * written.
   */
  def publishAgain(block: Notification, epoch: Int): Unit = {
    credit.await(sequence - file.blockCount + 1, sequence)
    FailPoint("P1")
    blocks.record(sequence, block.sequence, epoch, elementsBefore, bytesBefore)
    announce(block.copy(sequence = sequence, epoch = epoch))
  }

  /** P3 and P4, behind P2. */
  private def announce(notification: Notification): Unit = {
    FailPoint("P2")
    file.published = sequence + 1
    FailPoint("P3")
    sequence += 1
    count(notification)
    send(notification)
    FailPoint("P4")
  }

  /**
   * Waits until the rank has released everything: only then is it sure that it has seen everything.
   * (E1)
   */
  def awaitAllReleased(): Unit = {
    credit.await(sequence, sequence)
    if (isAtEnd) FailPoint("E1")
  }

  /**
   * Waits until the rank has asked for what follows all that is published, END_OF_EPOCH last. It
   * may hold blocks of it still.
   */
  def awaitAcknowledged(): Unit = credit.awaitAcknowledged(sequence)

  /** Lets the rank go, behind END_OF_DATA: no attempt needs the pair any more. (E3) */
  def markEndSeen(): Unit = {
    FailPoint("E2")
    file.markEndSeen()
    FailPoint("E3")
  }

  /**
   * Runs `body` with the mapped file, for another thread than the pair's; None where the pair has
   * been closed.
   */
  private[pair] def withMappedFile[A](body: MappedFile => A): Option[A] =
    synchronized(if (closed) None else Some(body(file)))

  /**
   * The whole ring, for measuring what writing to it costs without a rank: only while everything is
   * released.
   */
  private[supply] def ring: IndexedSeq[ByteBuffer] = (0 until file.blockCount).map(file.slot)

  private def count(notification: Notification): Unit =
    if (notification.kind == Constant.NOTIFICATION_BLOCK) {
      elementsBefore += notification.elementCount
      bytesBefore += notification.size
    }

  private def send(notification: Notification): Unit = {
    val written =
      try notifications.write(notification, new Deadline(timeout))
      catch {
        case e: java.nio.channels.ClosedByInterruptException => throw e
        case _: IOException => throw credit.rankIsGone(sequence)
      }
    if (!written) throw credit.rankIsStuck("read no notification, and its pipe is full,")
  }

  /** Takes up what earlier attempts have left. (A5) */
  private[pair] def resume(): Unit = {
    lastPublished.foreach { last =>
      val (elements, bytes) = blocks.before(last.sequence)
      elementsBefore = elements
      bytesBefore = bytes
      count(last)
    }
    (credit.releasedBlocks until sequence).foreach(number => send(blocks.copyOf(number)))
    blocks.findResident(sequence)
  }

  override def close(): Unit = synchronized {
    closed = true
    try {
      notifications.close()
      requests.close()
      file.close()
    } finally { Pair.held.remove(file.path); () }
  }
}

object Pair {

  /**
   * What this JVM has open, and the pair where a task is attached to it. Nobody else here may even
   * open the file: the JVM's locks on a file fall when any of its channels on that file is closed.
   */
  private val held = new ConcurrentHashMap[Path, Option[Pair]]

  private val pollMillis = 20L

  /** What stands in the way of attaching; `isAttempt`: another one of the same task. */
  private final case class Obstacle(text: String, isAttempt: Boolean = false)

  private def heldByAnother(where: String = "") =
    Obstacle(s"another attempt of the same task still holds it$where", isAttempt = true)

  /** What a plan follows from, withMappedFile the data. */
  private val PlanOptions =
    "--partitions, --ranks, --seed, --shuffle or --uneven (with --block-elements)"

  /** The epoch that is to stay has more blocks than the ring has room for. */
  object NoRoomToStay extends ControlThrowable

  /**
   * Attaches to the pair, waiting for its rank until the time limit.
   *
   * @param name
   *   the pair in messages
   * @param attempt
   *   Spark's number of this attempt
   * @param timeout
   *   limit, in seconds, of this and each later wait
   * @param run
   *   number of this run; 0: it has none, and its pairs can not be told of a failure while a task
   *   holds them
   */
  def attach(name: String, paths: PairPaths, attempt: Int, timeout: Double, run: Long = 0): Pair = {
    val path = Paths.get(paths.mappedFile)
    val fullName = s"$name (${paths.mappedFile})"
    val limit = new Deadline(timeout)
    val nobody = Obstacle(
      s"no rank has opened it: is mpirun running on this node, with the same mapped-files.conf (${paths.configLine})?")
    var obstacle = nobody
    while (true) {
      if (held.putIfAbsent(path, None) == null) {
        var pair: Option[Pair] = None
        try {
          tryAttach(fullName, path, paths, attempt, timeout, run) match {
            case Left(reason) => obstacle = reason.getOrElse(nobody)
            case Right(made) => pair = Some(made)
          }
        } finally if (pair.isEmpty) held.remove(path) else held.put(path, pair)
        if (pair.isDefined) return pair.get
      } else obstacle = heldByAnother(" in this executor")
      if (limit.passed) {
        val message = f"$fullName: ${obstacle.text}%s (waited $timeout%.0f s; --timeout)"
        throw (if (obstacle.isAttempt) new PairHeldException(message)
               else new RankException(message))
      }
      Thread.sleep(pollMillis)
    }
    throw new IllegalStateException("unreachable")
  }

  /**
   * Runs `body` with the mapped file withMappedFile a task that may be attached to it, or with None
   * where there is none. Returns None itself while a task of this JVM is attaching or leaving.
   */
  private[pair] def withMappedFile[A](path: Path, group: Option[String])(
      body: Option[MappedFile] => A): Option[A] =
    held.putIfAbsent(path, None) match {
      case null =>
        try Some(MappedFile.open(path, group) match {
            case Some(file) => Using.resource(file)(opened => body(Some(opened)))
            case None => body(None)
          })
        finally { held.remove(path); () }
      case attached => attached.flatMap(_.withMappedFile(file => body(Some(file))))
    }

  /**
   * E3 for an attempt that has died before it could: lets the rank go where it still waits for its
   * task of this run.
   */
  def markEndSeen(paths: PairPaths, run: Long): Unit = {
    withMappedFile(Paths.get(paths.mappedFile), paths.group) {
      case Some(file) if file.rankLives && file.run == run => file.markEndSeen()
      case _ => ()
    }
    ()
  }

  /** Whether a rank lives there; also while a task of this JVM is attaching or leaving. */
  def hasRank(paths: PairPaths): Boolean =
    try withMappedFile(Paths.get(paths.mappedFile), paths.group)(_.exists(_.rankLives)).getOrElse(
        true)
    catch { case _: PairFile.NotSharedYetException => false }

  /** A1. */
  private def openMappedFile(
      path: Path, group: Option[String]): Either[Option[Obstacle], MappedFile] =
    try MappedFile.open(path, group).toRight(None)
    catch { case e: PairFile.NotSharedYetException => Left(Some(Obstacle(e.getMessage))) }

  /** One try of A1 to A5: the pair, or what stands in the way; None: no rank is there. */
  private def tryAttach(
      name: String, path: Path, paths: PairPaths, attempt: Int, timeout: Double, run: Long)
      : Either[Option[Obstacle], Pair] =
    openMappedFile(path, paths.group) match {
      case Left(reason) => Left(reason)
      case Right(file) =>
        var requests: RequestPipe = null
        var notifications: NotificationPipe = null
        var done = false
        try {
          FailPoint("A1")
          if (!file.rankLives) return Left(Some(Obstacle(
                "its files are there, but their rank is dead, and no new rank has opened it")))
          FailPoint("A2")
          if (!file.lockForTask()) return Left(Some(heldByAnother()))
          file.run = run
          FailPoint("A3")
          try {
            requests = NamedPipe.openRequests(Paths.get(paths.requestPipe), paths.group)
            notifications =
              NamedPipe.openNotifications(Paths.get(paths.notificationPipe), paths.group)
          } catch {
            case _: java.nio.file.NoSuchFileException if !file.rankLives => return Left(None)
            case e: IOException if !e.isInstanceOf[java.nio.channels.ClosedByInterruptException] =>
              throw new PairException(
                s"$name: can not open its pipes ${paths.requestPipe} and ${paths.notificationPipe}: $e. " +
                  "Do both sides use the same named-pipes.conf?", e)
          }
          if (!file.rankLives) return Left(Some(Obstacle("its rank died while the task attached")))
          FailPoint("A4")
          if (file.version >>> 16 != Constant.VERSION_MAJOR)
            refuseVersion(name, file, notifications, new Deadline(timeout))
          file.check()
          file.setTask(ProcessHandle.current().pid().toInt, attempt)
          val pair = new Pair(name, paths, file, requests, notifications, timeout)
          pair.resume()
          FailPoint("A5")
          done = true
          Right(pair)
        } finally if (!done) {
            if (notifications != null) notifications.close()
            if (requests != null) requests.close()
            file.close()
          }
    }

  private def refuseVersion(name: String, file: MappedFile, notifications: NotificationPipe,
      limit: Deadline): Nothing = {
    val text =
      s"$name: the rank's libsupply speaks contract ${Layout.versionText(file.version)}, the Supplier " +
        s"${Layout.versionText(Layout.version)}: build both from the same release"
    file.taskFailure = text
    // The versions are the cause, whether or not the rank can still be told.
    try notifications.write(Notification.failure(file.generation), limit)
    catch {
      case e: IOException if !e.isInstanceOf[java.nio.channels.ClosedByInterruptException] => ()
    }
    throw new ContractException(text)
  }
}
