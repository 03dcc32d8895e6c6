package supply.block

import java.nio.channels.FileChannel
import java.nio.file.LinkOption.NOFOLLOW_LINKS
import java.nio.file.StandardOpenOption.{READ, WRITE}
import java.nio.file.attribute.BasicFileAttributes
import java.nio.file.{FileAlreadyExistsException, Files, NoSuchFileException}
import java.nio.{ByteBuffer, ByteOrder}

import scala.collection.mutable.ArrayBuffer
import scala.util.Using

import supply.core.{FailPoint, PairException}
import supply.pair.{BlockCopies, Pair, PairFile}
import supply.protocol.{Notification, Schema}
import supply.protocol.Layout.{BlockHeader, Constant, MappedFileHeader => At}

/**
 * The resident file of a pair: found, or written with an epoch. `run`: of this task. For the pair's
 * thread.
 */
private[supply] final class PairResidentFile(pair: Pair, schema: Schema, names: ResidentFileNames,
    run: Long,
    space: => ResidentSpace) {
  private var writer = Option.empty[ResidentFileWriter]

  ResidentFolder.make(names.folder, names.group)
  if (pair.isUntouched) removeStale()
  private var found = ResidentFile.find(names.whenSealed, names.group, header)
  if (found.isDefined) Files.deleteIfExists(names.unsealed)

  /** The sealed file, from the END_OF_EPOCH of its epoch on. */
  def file: Option[ResidentFile] = {
    if (found.isEmpty) found = writer.flatMap(_.sealedFile)
    found
  }

  /** Writes the pair's next blocks up to END_OF_EPOCH into the file: a whole epoch. (F1) */
  def begin(): Unit = copyTo(ResidentFileWriter.create(names, header.copy(run = run), space))

  /** Continues an epoch that an earlier attempt has begun to write. Otherwise does nothing. */
  def resume(): Unit =
    ResidentFileWriter.continued(names, header, space).foreach(copyTo)

  /** Removes the file, unless it outlives the run: the rank has released everything. (E1) */
  def remove(): Unit = names.remove(run)

  /**
   * A run that died may have left files of this pair. Only one living run can have the pair's
   * mapped file.
   */
  private def removeStale(): Unit = {
    Files.deleteIfExists(names.unsealed)
    if (!ResidentFile.runOf(names.ofRun, names.group).forall(_ == run))
      Files.deleteIfExists(names.ofRun)
    ()
  }

  private def header = ResidentFileHeader.of(pair, schema, if (names.kept.isDefined) 0 else run)

  private def copyTo(next: ResidentFileWriter): Unit = {
    writer = Some(next)
    pair.copyTo(next)
  }
}

/**
 * Writes the blocks of an epoch into a resident file, too (proto/PROTOCOL.md, "Resident files").
 * `found`: the blocks that are in the file already. For the pair's thread.
 */
private[supply] final class ResidentFileWriter private (names: ResidentFileNames,
    channel: FileChannel,
    header: ResidentFileHeader, space: ResidentSpace, found: IndexedSeq[Notification])
    extends BlockCopies {
  private val blocks = ArrayBuffer(found: _*)
  private val blockHeader =
    ByteBuffer.allocateDirect(BlockHeader.SIZE).order(ByteOrder.LITTLE_ENDIAN)
  private val published = ByteBuffer.allocateDirect(8).order(ByteOrder.LITTLE_ENDIAN)
  private val key = keyOfName
  private var unforced = 0L
  private var result = Option.empty[ResidentFile]

  space.add(header.offsetOf(0))
  blocks.foreach(block => space.add(spaceOf(block)))

  /** The file, once [[seal]] has returned. */
  def sealedFile: Option[ResidentFile] = result

  /** F2. Writes a block with the columns that are in the pair's slot, after the block header. */
  override def append(block: Notification, columns: Int, slot: ByteBuffer): Unit = {
    val k = blocks.size
    require(block.sequence == header.first + k, s"block ${block.sequence} is not the next one")
    val copy = block.copy(sequence = k, epoch = 0, offset = header.offsetOf(k))
    space.add(spaceOf(copy))
    space.writing {
      copy.write(blockHeader, BlockHeader.notification)
      blockHeader.putInt(BlockHeader.columnCount, columns)
      write(Array(blockHeader.clear(), columnsOf(slot, block.size)), copy.offset)
      FailPoint("F2")
      blocks += copy
      storePublished()
      forceSome(copy.size)
    }
  }

  /** So that the last force is short: the rank waits for it. */
  private def forceSome(added: Long): Unit = {
    unforced += added
    if (names.kept.isDefined && unforced >= ResidentFileWriter.ForceBytes) {
      channel.force(false)
      unforced = 0
    }
  }

  /** Which file has the unsealed name. */
  private def keyOfName: AnyRef =
    Files.readAttributes(names.unsealed, classOf[BasicFileAttributes], NOFOLLOW_LINKS).fileKey

  private def columnsOf(slot: ByteBuffer, size: Long): ByteBuffer =
    slot.duplicate().limit(size.toInt).position(BlockHeader.SIZE)

  private def write(buffers: Array[ByteBuffer], at: Long): Unit = {
    channel.position(at)
    while (buffers.last.hasRemaining) channel.write(buffers)
  }

  private def storePublished(): Unit =
    write(Array(published.clear().putLong(0, blocks.size.toLong)), At.published.toLong)

  private def storeTaskPid(): Unit = write(
    Array(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(0, header.taskPid)),
    At.taskPid.toLong)

  private def spaceOf(block: Notification): Long =
    (block.size + Constant.BLOCK_BYTES_UNIT - 1) & -Constant.BLOCK_BYTES_UNIT.toLong

  /** F3. Nobody writes to the file afterwards. */
  override def seal(): Unit = {
    val fileBytes = ResidentFileBlocks.end(header, blocks.toIndexedSeq)
    space.writing {
      channel.truncate(fileBytes)
      write(Array(whenSealed.copy(blocks = blocks.size,
            elements = blocks.map(_.elementCount.toLong).sum,
            fileBytes = fileBytes, isSealed = true).toBytes), 0)
      if (names.kept.isDefined) channel.force(true)
      channel.close()
      FailPoint("F3")
      result = Some(named())
    }
  }

  /** A file that outlives its run belongs to none. */
  private def whenSealed = if (names.kept.isDefined) header.copy(run = 0) else header

  /** Gives the file its name. Another run may have given that name to a file with the same data. */
  private def named(): ResidentFile = {
    // An attempt that Spark took for dead may wake up here.
    if (keyOfName != key) throw new PairException(
      s"${names.unsealed} is now the file of another attempt: this one ends")
    val isOwn =
      try {
        Files.createLink(names.whenSealed, names.unsealed)
        true
      } catch { case _: FileAlreadyExistsException => false }
    Files.deleteIfExists(names.unsealed)
    if (isOwn) new ResidentFile(ResidentFile.foreign(names.whenSealed), blocks.toIndexedSeq)
    else ResidentFile.find(names.whenSealed, names.group, whenSealed).getOrElse(
      throw new NoSuchFileException(names.whenSealed.toString, null, "removed while it was opened"))
  }

  override def close(): Unit = channel.close()
}

private[block] object ResidentFileWriter {
  /** A kept file is on the disk before it gets its name: this much is written before the next force. */
  private final val ForceBytes = 1L << 30

  /** F1. */
  def create(names: ResidentFileNames, header: ResidentFileHeader,
      space: ResidentSpace): ResidentFileWriter = {
    Files.deleteIfExists(names.unsealed)
    space.warnIfSmall()
    space.writing {
      PairFile.closedOnError(PairFile.create(names.unsealed, names.group)) { channel =>
        val writer = new ResidentFileWriter(names, channel, header, space, IndexedSeq.empty)
        writer.write(Array(header.toBytes), 0)
        FailPoint("F1")
        writer
      }
    }
  }

  /**
   * Continues the file of an attempt that died, before the block `next.first` of the same pair;
   * None: there is none.
   */
  def continued(names: ResidentFileNames, next: ResidentFileHeader,
      space: ResidentSpace): Option[ResidentFileWriter] =
    try Using.resource(PairFile.find(names.unsealed, PairFile.Blocks, names.group)) { file =>
        PairFile.closedOnError(file.open(READ, WRITE))(continued(names, next, space, _))
      }
    catch { case _: NoSuchFileException => None }

  private def continued(names: ResidentFileNames, next: ResidentFileHeader, space: ResidentSpace,
      channel: FileChannel): Option[ResidentFileWriter] = {
    val header = ResidentFileHeader.read(names.unsealed, channel)
    val blocks = next.first - header.first
    if (header.generation != next.generation || blocks < 0 || blocks > header.blocks) {
      channel.close()
      None
    } else {
      val found = ResidentFileBlocks.read(names.unsealed, channel, header, blocks.toInt)
      val writer = new ResidentFileWriter(names, channel,
        header.copy(taskPid = next.taskPid, isSealed = false), space, found)
      writer.storeTaskPid()
      writer.storePublished()
      Some(writer)
    }
  }
}
