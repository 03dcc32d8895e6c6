package supply.pair

import java.lang.invoke.VarHandle
import java.nio.{ByteBuffer, ByteOrder, MappedByteBuffer}
import java.nio.channels.{FileChannel, OverlappingFileLockException}
import java.nio.file.{NoSuchFileException, Path}
import java.nio.file.StandardOpenOption.{READ, WRITE}

import scala.util.Using

import supply.core.{ContractException, PairException}
import supply.protocol.Layout.{Constant, MappedFileHeader => At}
import supply.protocol.{Layout, Position, Schema, Text}

/**
 * The task's view of the pair's mapped file, which the rank has made: a header and a ring of slots.
 * For one thread.
 */
final class MappedFile private (
    val path: Path, channel: FileChannel, header: MappedByteBuffer) extends AutoCloseable {

  val generation: Long = header.getLong(At.generation)
  val blockBytes: Int = header.getLong(At.blockBytes).toInt
  val blockCount: Int = header.getInt(At.blockCount)
  val ringOffset: Long = header.getLong(At.ringOffset)
  val rankPid: Int = header.getInt(At.rankPid)

  /** Rank in MPI_COMM_WORLD, or -1 where the rank does not know it. */
  val rank: Int = header.getInt(At.rank)

  // Lazy, since block_count is only to be trusted after check(). Many slots are mapped at once: there may be more of them
  // than a process may have mappings.
  private lazy val slots = new Array[ByteBuffer](blockCount)
  private lazy val windowSlots = Constant.BLOCK_BYTES_MAX / blockBytes
  private lazy val windows = new Array[MappedByteBuffer]((blockCount - 1) / windowSlots + 1)
  private var slotsMapped = false

  def version: Int = header.getInt(At.version)

  /** Refuses a header whose numbers do not agree with each other and with the file. */
  def check(): Unit = {
    def refuse(field: String, value: Any): Nothing =
      throw new ContractException(
        s"$path: the header's $field is $value, which proto/PROTOCOL.md does not allow")
    if (header.getInt(At.byteOrder) != Constant.BYTE_ORDER_MARK)
      refuse("byte_order", f"0x${header.getInt(At.byteOrder)}%08x")
    if (generation == 0) refuse("generation", generation)
    val wideBlockBytes = header.getLong(At.blockBytes)
    if (wideBlockBytes < Constant.BLOCK_BYTES_UNIT || wideBlockBytes > Constant.BLOCK_BYTES_MAX ||
      wideBlockBytes % Constant.BLOCK_BYTES_UNIT != 0) refuse("block_bytes", wideBlockBytes)
    if (blockCount < Constant.BLOCK_COUNT_MIN) refuse("block_count", blockCount)
    if (ringOffset != Constant.RING_OFFSET) refuse("ring_offset", ringOffset)
    val fileBytes = header.getLong(At.fileBytes)
    if (fileBytes != ringOffset + blockCount * wideBlockBytes || fileBytes > channel.size()) {
      refuse("file_bytes", s"$fileBytes (the file has ${channel.size()})")
    }
    if (header.getInt(At.startEpoch) < 0)
      refuse("start_epoch", Integer.toUnsignedLong(header.getInt(At.startEpoch)))
    if (header.getLong(At.startElement) < 0)
      refuse("start_element", java.lang.Long.toUnsignedString(header.getLong(At.startElement)))
    val inRing = published - released
    if (released < 0 || inRing < 0 || inRing > blockCount)
      refuse("published", s"$published (released: $released)")
  }

  /** Sequence numbers below this one are released: the credit. */
  def released: Long = {
    val value = header.getLong(At.released)
    VarHandle.acquireFence()
    value
  }

  /** The rank has asked for what follows the sequence numbers below this one. */
  def acknowledged: Long = {
    val value = header.getLong(At.acknowledged)
    VarHandle.acquireFence()
    value
  }

  /** Sequence numbers below this one are published. */
  def published: Long = {
    val value = header.getLong(At.published)
    VarHandle.acquireFence()
    value
  }

  def published_=(sequence: Long): Unit = {
    VarHandle.releaseFence()
    header.putLong(At.published, sequence)
    ()
  }

  /**
   * Says that the task knows that the rank has released everything, END_OF_DATA included: the rank
   * may remove the pair.
   */
  def markEndSeen(): Unit = {
    VarHandle.releaseFence()
    header.putInt(At.endSeen, 1)
    ()
  }

  /** Says which blocks stay: of the next block to be published, and before it. */
  def residentAre(first: Long, count: Long): Unit = {
    header.putLong(At.residentFirst, first)
    header.putLong(At.residentCount, count)
    ()
  }

  /** Sequence number of the first block that stays, and how many do. */
  def residentFirst: Long = header.getLong(At.residentFirst)

  def residentCount: Long = header.getLong(At.residentCount)

  def setTask(pid: Int, attempt: Int): Unit = {
    header.putInt(At.taskPid, pid)
    header.putInt(At.taskAttempt, attempt)
    ()
  }

  /** The run of the last task that has had the lock; 0: none has. */
  def run: Long = header.getLong(At.run)

  def run_=(number: Long): Unit = {
    header.putLong(At.run, number)
    ()
  }

  /** Where the rank wants its data to begin, and the plan under which it has saved that; 0: any. */
  def start: Position = Position(
    header.getInt(At.startEpoch),
    if (header.getInt(At.startInside) == 0) None
    else Some(header.getInt(At.startPartition) -> header.getLong(At.startElement)))

  def startPlan: Long = header.getLong(At.startPlan)

  def plan_=(fingerprint: Long): Unit = {
    header.putLong(At.plan, fingerprint)
    ()
  }

  def plan: Long = header.getLong(At.plan)

  /** Writes the schema, or checks it against the one that an earlier attempt has written. */
  def writeOrCheckSchema(schema: Schema): Unit = {
    val columns = header.getInt(At.schemaColumns)
    VarHandle.acquireFence()
    if (columns == 0) {
      schema.write(header)
      VarHandle.releaseFence()
      header.putInt(At.schemaColumns, schema.columns.size)
    } else if (Schema.read(header, columns) != schema) {
      throw new ContractException(
        s"$path: an earlier attempt has announced other columns: start the ranks anew")
    }
  }

  def taskFailure_=(text: String): Unit = {
    Text.write(header, At.taskFailure, Layout.FailureTextBytes, text)
    VarHandle.releaseFence()
  }

  def taskFailure: String = Text.read(header, At.taskFailure, Layout.FailureTextBytes)

  def rankFailure: String = {
    VarHandle.acquireFence()
    Text.read(header, At.rankFailure, Layout.FailureTextBytes)
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
    slotsMapped = true
    if (windows(index) == null) {
      val first = index * windowSlots
      val slotsIn = math.min(windowSlots, blockCount - first)
      windows(index) = MappedFile.map(channel, slotOffset(first), slotsIn.toLong * blockBytes)
    }
    windows(index)
  }

  /** Whether the rank that made this file lives: its lock is held. */
  def rankLives: Boolean = {
    val lock = channel.tryLock(Constant.RANK_LOCK_BYTE, 1, true)
    if (lock != null) lock.release()
    lock == null
  }

  /**
   * Takes the lock that keeps every other attempt of this task out; false if another one holds it.
   */
  def lockForTask(): Boolean =
    try channel.tryLock(Constant.TASK_LOCK_BYTE, 1, false) != null
    catch { case _: OverlappingFileLockException => false }

  /** Closes and unmaps: no buffer of it may be used afterwards. */
  override def close(): Unit = {
    channel.close()
    if (slotsMapped) windows.filter(_ != null).foreach(MappedFile.unmap)
    MappedFile.unmap(header)
  }
}

object MappedFile {

  /**
   * The file at `path`, or None while there is none or its rank has not published it yet.
   *
   * @param group
   *   whose files are used withMappedFile those of this user: name or number
   */
  def open(path: Path, group: Option[String] = None): Option[MappedFile] = {
    val channel =
      try Using.resource(PairFile.find(path, PairFile.Mapped, group))(_.open(READ, WRITE))
      catch {
        case _: NoSuchFileException => return None
        case e: PairFile.NotSharedYetException => throw e
        case e: java.io.IOException =>
          throw new PairException(s"can not open the mapped file $path: $e", e)
      }
    var opened = false
    try {
      if (channel.size() < Constant.RING_OFFSET) return None
      val header = map(channel, 0, Constant.RING_OFFSET)
      val version = header.getInt(At.version)
      VarHandle.acquireFence()
      val magic = new Array[Byte](Layout.Magic.length)
      header.get(At.magic, magic)
      if (version == 0) {
        unmap(header)
        return None
      }
      if (!magic.sameElements(Layout.Magic)) {
        unmap(header)
        throw new ContractException(
          s"$path is not a mapped file of a rank (its magic is wrong): see mapped-files.conf")
      }
      opened = true
      Some(new MappedFile(path, channel, header))
    } finally if (!opened) channel.close()
  }

  private def map(channel: FileChannel, offset: Long, bytes: Long): MappedByteBuffer = {
    val buffer = channel.map(FileChannel.MapMode.READ_WRITE, offset, bytes)
    buffer.order(ByteOrder.LITTLE_ENDIAN)
    buffer
  }

  /**
   * The JVM unmaps when it collects garbage, which keeps a dead pair's memory for that long: do it
   * at once.
   */
  private[supply] val unmap: MappedByteBuffer => Unit = {
    val field = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe")
    field.setAccessible(true)
    val unsafe = field.get(null).asInstanceOf[sun.misc.Unsafe]
    buffer => unsafe.invokeCleaner(buffer)
  }
}
