package supply.pair

import java.lang.invoke.MethodHandles
import java.io.IOException
import java.nio.{ByteBuffer, ByteOrder, MappedByteBuffer}
import java.nio.channels.{FileChannel, OverlappingFileLockException}
import java.nio.file.{Files, NoSuchFileException, Path}
import java.nio.file.StandardOpenOption.{READ, WRITE}

import scala.util.Using

import supply.core.{Buffers, ContractException, MappingException, PairException, SourceException}
import supply.protocol.{EpochCounts, Exchange, Layout, Notification, Position, Schema, Text}
import supply.protocol.Layout.{BlockHeader, Constant, ForeignFile => Foreign, MappedFileHeader => At}
import supply.source.ForeignFile

/**
 * The mapped file that the rank has made, a header and a ring of slots, or the memory of a link that
 * is laid out so. For one thread.
 */
private[supply] final class MappedFile private[pair] (val path: Path, memory: PairMemory)
    extends AutoCloseable {
  import MappedFile.{ints, longs}

  private val header = memory.header

  val generation: Long = header.getLong(At.generation)

  // Each of these is read once: the rank may change it after check().
  private val wideBlockBytes = header.getLong(At.blockBytes)
  val blockBytes: Int = wideBlockBytes.toInt
  private val startElement = header.getLong(At.startElement)
  val blockCount: Int = header.getInt(At.blockCount)
  val ringOffset: Long = header.getLong(At.ringOffset)
  val rankPid: Int = header.getInt(At.rankPid)

  /** Rank in MPI_COMM_WORLD, or -1 if the rank does not know it. */
  val rank: Int = header.getInt(At.rank)

  val localRank: Int = header.getInt(At.localRank)

  /** Of a shared ring, which only the file of reader 0 has: its readers (0: it is not shared), and which one this is. */
  val readers: Int = header.getInt(At.readers)
  val reader: Int = header.getInt(At.reader)

  // Lazy, because block_count can be trusted only after check(). One mapping holds many slots,
  // because a ring may have more slots than a process may have mappings.
  private lazy val slots = new Array[ByteBuffer](blockCount)
  private lazy val windowSlots = Constant.BLOCK_BYTES_MAX / blockBytes
  private lazy val windows = new Array[ByteBuffer]((blockCount - 1) / windowSlots + 1)

  def version: Int = header.getInt(At.version)

  /** Refuses a header whose numbers contradict each other or the file. */
  def check(): Unit = {
    def refuse(field: String, value: Any): Nothing =
      throw new ContractException(
        s"$path: the header's $field is $value, which proto/PROTOCOL.md does not allow")
    if (header.getInt(At.byteOrder) != Constant.BYTE_ORDER_MARK)
      refuse("byte_order", f"0x${header.getInt(At.byteOrder)}%08x")
    if (generation == 0) refuse("generation", generation)
    if (!Layout.isBlockBytes(wideBlockBytes)) refuse("block_bytes", wideBlockBytes)
    if (blockCount < Constant.BLOCK_COUNT_MIN) refuse("block_count", blockCount)
    if (ringOffset != Constant.RING_OFFSET) refuse("ring_offset", ringOffset)
    val fileBytes = header.getLong(At.fileBytes)
    if (readers < 0 || readers > Constant.READERS_MAX || readers == 1) refuse("readers", readers)
    if (reader < 0 || (reader > 0 && reader >= readers)) refuse("reader", s"$reader of $readers")
    val ownBytes = if (reader > 0) ringOffset else fileBytes
    if (fileBytes != ringOffset + blockCount * wideBlockBytes || ownBytes > memory.size)
      refuse("file_bytes", s"$fileBytes (the file has ${memory.size})")
    if (start.epoch < 0) refuse("start_epoch", Integer.toUnsignedLong(start.epoch))
    if (startElement < 0)
      refuse("start_element", java.lang.Long.toUnsignedString(startElement))
    val inRing = published - released
    if (released < 0 || inRing < 0 || inRing > blockCount)
      refuse("published", s"$published (released: $released)")
  }

  /** Sequence numbers below this one are released: the credit. */
  def released: Long = acquireLong(At.released)

  /** The rank has asked for the block with this sequence number. */
  def acknowledged: Long = acquireLong(At.acknowledged)

  /** Of a link: what its rank has sent. Neither shrinks. */
  private[pair] def credit(released: Long, acknowledged: Long): Unit = {
    longs.setRelease(header, At.released, math.max(released, this.released))
    longs.setRelease(header, At.acknowledged, math.max(acknowledged, this.acknowledged))
  }

  /** Sequence numbers below this one are published. */
  def published: Long = acquireLong(At.published)

  def published_=(sequence: Long): Unit = longs.setRelease(header, At.published, sequence)

  /** A reader's file gets what a task that died has stored in that of reader 0 alone. */
  def follow(first: MappedFile): Unit = {
    if (published > first.published) throw new ContractException(
      s"$path: the header's published is $published, and that of reader 0 ${first.published}")
    published = first.published
    plan = first.plan
    first.counts.foreach(setCounts)
    followForeignFiles(first)
  }

  /** Lets the rank remove the pair: it has released everything, END_OF_DATA included. */
  def markEndSeen(): Unit = ints.setRelease(header, At.endSeen, 1)

  /** Notes what a whole epoch has. A reader that sees that it is known sees both numbers. */
  def setCounts(counts: EpochCounts): Unit = {
    header.putLong(At.epochElements, counts.elements)
    header.putLong(At.epochSteps, counts.steps)
    ints.setRelease(header, At.countsKnown, 1)
  }

  private def counts: Option[EpochCounts] =
    if (acquireInt(At.countsKnown) == 0) None
    else Some(EpochCounts(header.getLong(At.epochElements), header.getLong(At.epochSteps)))

  def forgetCounts(): Unit = ints.setRelease(header, At.countsKnown, 0)

  def taskPid: Int = header.getInt(At.taskPid)

  /** namespace: of the process id; 0: not known. */
  def setTask(pid: Int, namespace: Int, attempt: Int): Unit = {
    header.putInt(At.taskNamespace, namespace)
    header.putInt(At.taskPid, pid)
    header.putInt(At.taskAttempt, attempt)
    header.putInt(At.attachments, header.getInt(At.attachments) + 1)
    ()
  }

  /** The run of the last task that held the lock; 0: none has. */
  def run: Long = header.getLong(At.run)

  def run_=(number: Long): Unit = { header.putLong(At.run, number); () }

  /** Where the rank wants its data to begin. */
  val start: Position = Position(
    header.getInt(At.startEpoch),
    if (header.getInt(At.startInside) == 0) None
    else Some(header.getInt(At.startPartition) -> startElement))

  /** What the readers of one ring must ask for alike. */
  private[supply] def asked: (Position, Long, Boolean) = (start, startPlan, acceptsExchange)

  /** The plan under which the rank has saved [[start]]; 0: any. */
  def startPlan: Long = header.getLong(At.startPlan)

  def plan: Long = header.getLong(At.plan)

  def plan_=(fingerprint: Long): Unit = { header.putLong(At.plan, fingerprint); () }

  /** Writes the schema, or checks it against the one that an earlier attempt has written. */
  def writeOrCheckSchema(schema: Schema): Unit = {
    val columns = acquireInt(At.schemaColumns)
    if (columns == 0) {
      schema.writeHeader(header)
      if (schema.isWide) memory.writeSchema(schema.toBytes, afterRing)
      ints.setRelease(header, At.schemaColumns, schema.entries.size)
    } else if (readSchema(columns) != schema) {
      throw new ContractException(
        s"$path: an earlier attempt has announced other columns: start the ranks anew")
    }
  }

  /** Whether the columns are known. */
  private[pair] def hasSchema: Boolean = acquireInt(At.schemaColumns) != 0

  private def readSchema(columns: Int): Schema =
    try Schema.read(header, columns, memory.readSchema(_, afterRing))
    catch { case e: ContractException => throw new ContractException(s"$path: ${e.getMessage}") }

  private def afterRing: Long = slotOffset(blockCount)

  /**
   * Writes what the rank must exchange, before the schema. Afterwards, checks it: the rank may have
   * read it with the schema.
   */
  def writeOrCheckExchange(exchange: Exchange): Unit =
    if (acquireInt(At.schemaColumns) == 0) exchange.write(header)
    else if (Exchange.read(header) != exchange)
      throw new ContractException(
        s"$path: an earlier attempt has announced another exchange (--shuffle all, --exchange-fraction, --seed): " +
          "start the ranks anew")

  /** Whether the rank's program exchanges elements with the other ranks. */
  def acceptsExchange: Boolean = (header.getInt(At.accepts) & Constant.ACCEPTS_EXCHANGE) != 0

  /** The number of a foreign file, from 1. It gets one if no attempt has given it one. */
  def numberOf(file: ForeignFile): Int = {
    val count = acquireInt(At.foreignCount)
    if (count < 0 || count > Constant.FOREIGN_FILES_MAX)
      throw new ContractException(s"$path: the header's foreign_count is $count")
    val known = (0 until count).map(readForeignFile)
    known.find(_.path == file.path).filter(_ != file).foreach { _ =>
      throw new SourceException(
        s"${file.path} has changed during the run: nobody may write to or replace a file that ranks read " +
          "(--in-place, --resident-folder, --keep)")
    }
    known.indexOf(file) match {
      case -1 =>
        if (count == Constant.FOREIGN_FILES_MAX)
          throw new SourceException(
            s"$path: a rank cannot read more than ${Constant.FOREIGN_FILES_MAX} files in place (--in-place): " +
              "supply them without that option")
        writeForeignFile(count, file)
        ints.setRelease(header, At.foreignCount, count + 1)
        count + 1
      case index => index + 1
    }
  }

  /** Enters what the file of reader 0 has, and a task that died has not entered here. */
  def followForeignFiles(first: MappedFile): Unit =
    (acquireInt(At.foreignCount) until first.acquireInt(At.foreignCount)).foreach { index =>
      writeForeignFile(index, first.readForeignFile(index))
      ints.setRelease(header, At.foreignCount, index + 1)
    }

  private def foreignFileAt(index: Int): Int =
    Constant.FOREIGN_FILES_OFFSET + index * Layout.ForeignFile.SIZE

  private def readForeignFile(index: Int): ForeignFile = {
    val at = foreignFileAt(index)
    ForeignFile(Text.exactly(header, at + Foreign.path, Foreign.device),
      header.getLong(at + Foreign.device), header.getLong(at + Foreign.inode),
      header.getLong(at + Foreign.fileBytes), header.getLong(at + Foreign.modified))
  }

  private def writeForeignFile(index: Int, file: ForeignFile): Unit = {
    val at = foreignFileAt(index)
    Text.write(header, at + Foreign.path, Foreign.device, file.path)
    header.putLong(at + Foreign.device, file.device)
    header.putLong(at + Foreign.inode, file.inode)
    header.putLong(at + Foreign.fileBytes, file.bytes)
    header.putLong(at + Foreign.modified, file.modifiedNanos)
    ()
  }

  // A message in a pipe follows each of these texts, and orders it: FAILURE, and STOP or the end of
  // file.
  def taskFailure_=(text: String): Unit =
    Text.write(header, At.taskFailure, Layout.FailureTextBytes, text)

  def taskFailure: String = Text.read(header, At.taskFailure, Layout.FailureTextBytes)

  /** Of a link, whose rank has sent it. */
  private[pair] def rankFailure_=(text: String): Unit =
    Text.write(header, At.rankFailure, Layout.FailureTextBytes, text)

  def rankFailure: String = Text.read(header, At.rankFailure, Layout.FailureTextBytes)

  private def acquireLong(at: Int): Long = longs.getAcquire(header, at).asInstanceOf[Long]

  private def acquireInt(at: Int): Int = ints.getAcquire(header, at).asInstanceOf[Int]

  /** In which slot a block lies. */
  def slotOf(number: Long): Int = (number % blockCount).toInt

  /** The notification of a published block, by the copy in its slot. */
  def notification(number: Long): Notification = {
    val copy = Notification.read(slot(slotOf(number)), BlockHeader.notification)
    if (copy.sequence != number || copy.generation != generation)
      throw new ContractException(s"$path: the slot of block $number holds block ${copy.sequence}")
    copy
  }

  /** Where slot `index` begins in the file. */
  def slotOffset(index: Int): Long = ringOffset + index.toLong * blockBytes

  /** The slot's memory, mapped at its first use. */
  def slot(index: Int): ByteBuffer = {
    if (slots(index) == null) {
      slots(index) =
        window(index / windowSlots).slice(index % windowSlots * blockBytes, blockBytes).order(
          ByteOrder.LITTLE_ENDIAN)
    }
    slots(index)
  }

  private def window(index: Int): ByteBuffer = {
    if (windows(index) == null) {
      val first = index * windowSlots
      val slotsIn = math.min(windowSlots, blockCount - first)
      windows(index) = memory.map(slotOffset(first), slotsIn.toLong * blockBytes)
    }
    windows(index)
  }

  /** Whether the rank that made this file lives: it holds its lock. */
  def rankLives: Boolean = memory.rankLives

  /** Takes the lock that keeps other attempts of this task out; false: another attempt holds it. */
  def lockForTask(): Boolean = memory.lockForTask()

  /** Throws a CutFileException if the file was cut. */
  def requireWhole(): Unit = memory.requireWhole()

  /** As [[WholeFile]]: for everything that uses the file's memory. */
  def whileWhole[A](body: => A): A = memory.whileWhole(body)

  /** Closes and unmaps the file: its buffers must not be used afterwards. */
  override def close(): Unit = memory.close()
}

private[supply] object MappedFile {
  /** Inode of this process's PID namespace, "pid:[4026531836]", in which its id means something; 0: not known. */
  lazy val pidNamespace: Int =
    try
      Files.readSymbolicLink(Path.of("/proc/self/ns/pid")).toString.filter(_.isDigit).toLong.toInt
    catch { case _: IOException | _: NumberFormatException => 0 }

  private[pair] val ints =
    MethodHandles.byteBufferViewVarHandle(classOf[Array[Int]], ByteOrder.LITTLE_ENDIAN)
  private[pair] val longs =
    MethodHandles.byteBufferViewVarHandle(classOf[Array[Long]], ByteOrder.LITTLE_ENDIAN)

  /** As [[MappedFile.whileWhole]], of several files. */
  def whileWhole[A](files: Seq[MappedFile])(body: => A): A =
    files.foldLeft(() => body)((inner, file) => () => file.whileWhole(inner()))()

  /** The file at `path`, of this user or a member of `group`; None: no rank has published it. */
  def open(path: Path, group: Option[String] = None,
      isOfFailure: Boolean = false): Option[MappedFile] = {
    val channel =
      try Using.resource(PairFile.find(path, PairFile.Mapped, group, isOfFailure))(
          _.open(READ, WRITE))
      catch {
        case _: NoSuchFileException => return None
        case e: PairFile.NotSharedYetException => throw e
        case e: java.io.IOException =>
          throw new PairException(s"cannot open the mapped file $path: $e", e)
      }
    var file = Option.empty[MappedFile]
    try {
      if (channel.size() >= Constant.RING_OFFSET) file = openPublished(path, channel)
      file
    } finally if (file.isEmpty) channel.close()
  }

  private def openPublished(path: Path, channel: FileChannel): Option[MappedFile] = {
    val header = map(path, channel, 0, Constant.RING_OFFSET)
    var file = Option.empty[MappedFile]
    try {
      if (ints.getAcquire(header, At.version).asInstanceOf[Int] != 0) {
        val magic = new Array[Byte](Layout.Magic.length)
        header.get(At.magic, magic)
        if (!magic.sameElements(Layout.Magic))
          throw new ContractException(
            s"$path is not a mapped file of a rank (its magic is wrong): see mapped-files.conf")
        file = Some(new MappedFile(path, new FileMemory(path, channel, header)))
      }
      file
    } finally if (file.isEmpty) unmap(header)
  }

  private[pair] def map(
      path: Path, channel: FileChannel, offset: Long, bytes: Long): MappedByteBuffer = {
    val buffer = map(path, channel, FileChannel.MapMode.READ_WRITE, offset, bytes)
    buffer.order(ByteOrder.LITTLE_ENDIAN)
    buffer
  }

  /**
   * Maps a part of a file. If the kernel refuses, Java reports an OutOfMemoryError as the cause, and
   * an executor that finds one among the causes exits: so this error has none.
   */
  private[supply] def map(path: Path, channel: FileChannel, mode: FileChannel.MapMode,
      offset: Long, bytes: Long): MappedByteBuffer =
    try channel.map(mode, offset, bytes)
    catch {
      case e: IOException if e.getCause.isInstanceOf[OutOfMemoryError] =>
        throw new MappingException(
          s"$path: the kernel does not map $bytes bytes of this file (${e.getCause.getMessage}): see ulimit -v and vm.max_map_count")
    }

  /** Tests the rank's lock with a query, which is a shared lock. Only one at a time succeeds in a JVM. */
  private[supply] def isLockedByRank(channel: FileChannel): Boolean =
    Iterator.continually {
      try {
        val lock = channel.tryLock(Constant.RANK_LOCK_BYTE, 1, true)
        if (lock != null) lock.release()
        Some(lock == null)
      } catch {
        case _: OverlappingFileLockException =>
          Thread.onSpinWait()
          None
      }
    }.collectFirst { case Some(isLocked) => isLocked }.get

  /** Unmaps at once. The JVM would keep the memory until it collects garbage. */
  private[supply] def unmap(buffer: MappedByteBuffer): Unit =
    Buffers.unsafe.invokeCleaner(buffer)
}
