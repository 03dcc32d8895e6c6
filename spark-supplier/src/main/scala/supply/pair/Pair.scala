package supply.pair

import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.ClosedByInterruptException
import java.nio.file.{Path, Paths}

import scala.util.Using

import org.slf4j.LoggerFactory

import supply.core.{Deadline, FailPoint}
import supply.protocol.{Notification, Position, Schema}
import supply.protocol.Layout.{BlockHeader, Constant}
import supply.source.ForeignFile

/**
 * Publishes blocks into slots that all its readers have released: of one rank, or of those that
 * share a ring, which the first one's file has. Steps (A1, P1, …) are those of proto/PROTOCOL.md.
 * For one thread. `paths`: of the first reader.
 */
private[supply] final class Pair private[supply] (
    val paths: PairPaths, opened: IndexedSeq[ReaderFiles], timeout: Double)
    extends PairTerms with AutoCloseable {
  override def name: String = opened.head.name
  private[supply] def file: MappedFile = opened.head.file
  override private[supply] val files: IndexedSeq[MappedFile] = opened.map(_.file)

  private var sequence = file.published
  private var elementsBefore = 0L
  private var bytesBefore = 0L
  files.tail.foreach(_.follow(file))
  private val readers = opened.map(new Reader(_))
  private var lastForeign: ForeignFile = _
  private var lastForeignNumber = 0
  private var copies = Option.empty[BlockCopies]
  private var closed = false

  /** Size of a slot. */
  def blockBytes: Int = file.blockBytes

  /** Rank in MPI_COMM_WORLD if the rank itself knows it, else -1. */
  def rank: Int = file.rank

  /** Time spent waiting for ranks to release a slot. */
  def waitedNanos: Long = readers.map(_.credit.waitedNanos).sum

  /** After the last block that any attempt has published, or else where the rank wants to begin. */
  def position: Position = lastPublished.map(Position.after).getOrElse(start)

  /** Where the rank wants to begin. */
  def start: Position = file.start

  /** Whether END_OF_DATA is published: only E1 to E3 are left. */
  def isAtEnd: Boolean = lastPublished.exists(_.kind == Constant.NOTIFICATION_END_OF_DATA)

  override def isUntouched: Boolean = sequence == 0

  private def lastPublished: Option[Notification] =
    if (sequence == 0) None else Some(file.notification(sequence - 1))

  /** Elements that all attempts together have published. */
  def publishedElements: Long = elementsBefore

  /** Bytes of the blocks of these elements, and of the values to which they refer. */
  def publishedBytes: Long = bytesBefore

  /** Up to the next END_OF_EPOCH, gives each block to `writer`, too. Closes it at the end. */
  private[supply] def copyTo(writer: BlockCopies): Unit = copies = Some(writer)

  /** The number under which blocks refer to the file. */
  def numberOf(foreign: ForeignFile): Int = {
    if (foreign ne lastForeign) {
      lastForeignNumber = file.numberOf(foreign)
      files.tail.foreach(_.followForeignFiles(file))
      lastForeign = foreign
    }
    lastForeignNumber
  }

  override def writeOrCheckSchema(schema: Schema): Unit = {
    super.writeOrCheckSchema(schema)
    opened.foreach(_.notifications.flush())
  }

  /** P1. Claims the next slot. */
  def claim(): Claim = {
    readers.foreach(_.credit.await(sequence - file.blockCount + 1, sequence))
    // Before the JVM's own error for a file that was cut: that one may come in any code.
    files.foreach(_.requireWhole())
    new Claim
  }

  /** The slot of the next block. */
  final class Claim private[Pair] {
    /** The columns are written here, after the block header. */
    val slot: ByteBuffer = file.slot(file.slotOf(sequence))

    /** P2 to P4. Publishes the block. `size` is in bytes and includes the header. */
    def commit(kind: Int, epoch: Int, partition: Int, firstElement: Long, elements: Int,
        columns: Int, size: Int, referencedBytes: Int = 0): Unit =
      publish(Notification(file.generation, kind, elements, sequence, epoch, partition,
          firstElement, file.slotOffset(file.slotOf(sequence)), size.toLong), columns,
        referencedBytes)

    private[Pair] def publish(
        notification: Notification, columns: Int, referencedBytes: Int): Unit = {
      import notification.kind
      FailPoint("P1")
      if (kind == Constant.NOTIFICATION_END_OF_EPOCH) sealCopies()
      slot.putInt(BlockHeader.columnCount, columns)
      slot.putInt(BlockHeader.referencedBytes, referencedBytes)
      slot.putLong(BlockHeader.elementsBefore, elementsBefore)
      slot.putLong(BlockHeader.bytesBefore, bytesBefore)
      notification.write(slot, BlockHeader.notification)
      FailPoint("P2")
      if (kind == Constant.NOTIFICATION_BLOCK && notification.file == 0)
        copies.foreach(_.append(notification, columns, slot))
      announce(notification)
    }
  }

  private def sealCopies(): Unit = {
    copies.foreach(_.seal())
    copies = None
  }

  /** P1 to P4 of a block that lies in a resident file: the slot gets only its header. */
  def publish(resident: ForeignFile, block: Notification, epoch: Int): Unit = {
    val number = numberOf(resident)
    claim().publish(block.copy(generation = file.generation, sequence = sequence, epoch = epoch,
        file = number), columns = 0, referencedBytes = 0)
  }

  /** Whether the last published block is one of that file. */
  def follows(resident: ForeignFile): Boolean =
    lastPublished.exists(_.file == numberOf(resident))

  /** P1 to P4 of END_OF_EPOCH. */
  def publishEndOfEpoch(epoch: Int): Unit = publishEnd(Constant.NOTIFICATION_END_OF_EPOCH, epoch)

  /** P1 to P4 of END_OF_DATA. */
  def publishEndOfData(): Unit = publishEnd(Constant.NOTIFICATION_END_OF_DATA, 0)

  private def publishEnd(kind: Int, epoch: Int): Unit =
    claim().commit(kind, epoch, 0, 0, 0, 0, BlockHeader.SIZE)

  /** P3 and P4. */
  private def announce(notification: Notification): Unit = {
    files.foreach(_.published = sequence + 1)
    FailPoint("P3")
    sequence += 1
    count(notification)
    readers.foreach(_.send(notification))
    FailPoint("P4")
  }

  private def count(notification: Notification): Unit =
    if (notification.kind == Constant.NOTIFICATION_BLOCK) {
      elementsBefore += notification.elementCount
      bytesBefore += notification.size + referencedBytes(notification)
    }

  /** Bytes of values to which that block refers. One of a resident file refers to none. */
  private def referencedBytes(block: Notification): Long = if (block.file != 0) 0
  else Integer.toUnsignedLong(
    file.slot(file.slotOf(block.sequence)).getInt(BlockHeader.referencedBytes))

  /** One rank that reads the ring. */
  private final class Reader(opened: ReaderFiles) {
    val credit = new Credit(opened.name, opened.file, opened.requests, timeout, sequence,
      if (files.size > 1) Some(watchOthers _) else None)
    private var isLate = false

    def hasAll: Boolean = opened.notifications.hasAll

    def send(notification: Notification): Unit = {
      val written =
        try opened.notifications.write(notification, new Deadline(timeout))
        catch {
          case e: ClosedByInterruptException => throw e
          case _: IOException => throw credit.rankIsGone(sequence)
        }
      if (!written) throw credit.rankIsStuck("read no notification, and its pipe is full,")
    }

    /** While this one is awaited: another one may be the cause, and all others wait with the task. */
    private def watchOthers(seconds: Double): Unit = {
      val others = readers.filter(_ ne this)
      others.foreach(_.requireLife())
      if (!isLate && seconds >= Pair.LateSeconds && others.exists(
          _.isAhead(credit.releasedBlocks))) {
        isLate = true
        Pair.log.warn(
          f"${opened.name}%s has released nothing for $seconds%.0f s, and the ranks that share its ring wait for it (${names.mkString(", ")}%s)")
      }
    }

    private def isAhead(released: Long): Boolean = opened.file.released > released

    private def requireLife(): Unit =
      if (!opened.file.rankLives && opened.file.released < sequence)
        throw credit.rankIsGone(sequence)
  }

  private def names: IndexedSeq[String] = opened.map(_.name)

  /** Waits until all have released everything: then they have also seen everything. (E1) */
  def awaitAllReleased(): Unit = {
    readers.foreach(_.credit.await(sequence, sequence))
    if (isAtEnd) FailPoint("E1")
  }

  /** As [[Credit.awaitAcknowledged]]; the ranks may still hold earlier blocks. */
  def awaitAcknowledged(): Unit = readers.foreach(_.credit.awaitAcknowledged(sequence))

  /** Lets the rank leave after END_OF_DATA: no attempt needs the pair any more. (E3) */
  def markEndSeen(): Unit = {
    FailPoint("E2")
    files.foreach(_.markEndSeen())
    FailPoint("E3")
  }

  /** Restores the totals of earlier attempts, and notifies unreleased blocks again. (A5) */
  private[supply] def resume(): Unit = {
    lastPublished.foreach { last =>
      val slot = file.slot(file.slotOf(last.sequence))
      elementsBefore = slot.getLong(BlockHeader.elementsBefore)
      bytesBefore = slot.getLong(BlockHeader.bytesBefore)
      count(last)
    }
    readers.filterNot(_.hasAll).foreach(reader =>
      (reader.credit.releasedBlocks until sequence).foreach(number =>
        reader.send(file.notification(number))))
  }

  /** As [[MappedFile.whileWhole]]: for everything that a task does with the pair. */
  def whileWhole[A](body: => A): A = MappedFile.whileWhole(files)(body)

  /** Runs `body` with the mapped file of that path, on any thread; None: the pair is closed. */
  private[supply] def withMappedFile[A](path: Path)(body: MappedFile => A): Option[A] =
    synchronized(if (closed) None
      else files.find(_.path == path).map(file => file.whileWhole(body(file))))

  override def close(): Unit = synchronized {
    closed = true
    try
      Using.Manager { use =>
        opened.foreach(use(_))
        copies.foreach(use(_))
      }.get
    finally files.foreach(file => OpenPairs.remove(file.path))
  }
}

/** Of a reader of a ring: its mapped file and pipes. `name` stands in messages. */
private[supply] final case class ReaderFiles(name: String, file: MappedFile,
    requests: Requests, notifications: Notifications) extends AutoCloseable {
  override def close(): Unit = Using.Manager { use =>
    use(file)
    use(requests)
    use(notifications)
  }.get
}

/** Gets the blocks of an epoch that is published, up to its end. */
private[supply] trait BlockCopies extends AutoCloseable {
  /** `slot` has the columns, after the block header. (F2) */
  def append(block: Notification, columns: Int, slot: ByteBuffer): Unit

  /** The epoch is whole. (F3) */
  def seal(): Unit
}

private[supply] object Pair {
  private val log = LoggerFactory.getLogger(classOf[Pair])

  /** After what time a reader for which others wait is named. */
  private final val LateSeconds = 30.0

  /**
   * Attaches to the pair of a rank, or to those of ranks that read one ring, in the order of their
   * numbers as readers. Waits, here and in each later call, at most `timeout` seconds,
   * and here for another attempt that holds the pair at most `attemptTimeout` (None: `timeout`).
   * Fails at once when `isExpected` says that the rank will not come. The names stand in messages. If
   * `run` is 0, no rank can be notified of a failure while a task holds its pair.
   */
  def attach(readers: IndexedSeq[(String, PairPaths)], attempt: Int, timeout: Double,
      run: Long = 0, attemptTimeout: Option[Double] = None,
      isExpected: () => Boolean = () => true): Pair =
    new Attachment(readers.map { case (name, paths) => NamedPaths(name, paths) }, attempt, timeout,
      run, attemptTimeout.getOrElse(timeout), isExpected).await()

  /** As attach, to a rank that connects; None: it has not yet. */
  def over(link: Link, paths: PairPaths, attempt: Int, timeout: Double, run: Long): Option[Pair] =
    link.file.map { file =>
      file.run = run
      Attachment.pair(paths, Vector(ReaderFiles(link.name, file, link, link)), attempt, timeout)
    }

  /** Runs `body` with the mapped file, if any. Returns None while a task attaches or leaves. */
  private[supply] def withMappedFile[A](paths: PairPaths, isOfFailure: Boolean = false)(
      body: Option[MappedFile] => A): Option[A] = {
    val path = Paths.get(paths.mappedFile)
    OpenPairs.attached(path) {
      MappedFile.open(path, paths.group, isOfFailure) match {
        case None => body(None)
        case Some(file) =>
          try file.whileWhole(body(Some(file)))
          finally file.close()
      }
    }(_.withMappedFile(path)(file => body(Some(file))))
  }

  /** Does E3 for an attempt that died before it did so. The rank waits for that, and can then exit. */
  def markEndSeen(paths: PairPaths, run: Long): Unit = {
    withMappedFile(paths)(_.filter(file => file.rankLives && file.run == run).foreach(
        _.markEndSeen()))
    ()
  }

  /** Whether a rank lives there. Also true if that is not known, while a task of this JVM attaches or leaves. */
  def hasRank(paths: PairPaths): Boolean =
    try withMappedFile(paths)(_.exists(_.rankLives)).getOrElse(true)
    catch { case _: PairFile.NotSharedYetException => false }
}
