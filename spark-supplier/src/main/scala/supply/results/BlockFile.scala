package supply.results

import java.nio.ByteBuffer
import java.nio.ByteOrder.{LITTLE_ENDIAN, nativeOrder}
import java.nio.channels.{FileChannel, OverlappingFileLockException}
import java.nio.file.StandardOpenOption.{READ, WRITE}
import java.nio.file.attribute.BasicFileAttributes
import java.nio.file.{Files, LinkOption, NoSuchFileException, Path}

import scala.util.{Try, Using}

import supply.block.BlockFileFields
import supply.core.{ContractException, PairException}
import supply.pair.{MappedFile, PairFile}
import supply.protocol.{Format, Layout, Schema, Text}
import supply.protocol.Layout.{Constant, MappedFileHeader => At}
import supply.rows.SparkTypes

/**
 * A sealed block file, mapped, with the shared lock of a reader. All calls but [[block]] must come
 * from one thread that nobody interrupts ([[OpenResults]]): an interrupt closes the channel, and
 * with it the lock.
 */
private[supply] final class BlockFile private (file: NamedFile, val header: BlockFileHeader)
    extends AutoCloseable {
  private val mapping = new FileMapping(file.path, file.channel, header)
  private val removal = new BlockFileRemoval(file)

  def path: Path = file.path

  /** Device and inode. */
  private[results] def key: AnyRef = file.key

  /** Whether the name still leads to this file. */
  private[results] def isNamed: Boolean = file.isNamed

  /** Refuses a file that was cut after it was sealed. */
  private[results] def requireWhole(): Unit =
    BlockFileHeader.requireWhole(path, header.fileBytes, file.channel.size())

  /** A block, which begins with the element of that number. */
  def block(index: Int, firstElement: Long): Block =
    new BlockCheck(path, header, index, mapping.address(index)).block(
      firstElement)

  /** As [[BlockFileRemoval.apply]]. The file stays mapped. */
  private[results] def remove(): Unit = removal()

  /** Unmaps the file: the memory of its blocks must not be used afterwards. */
  override def close(): Unit = {
    mapping.unmap()
    removal.close()
    file.close()
  }
}

private[supply] object BlockFile {
  /**
   * Opens a sealed file of this user or a member of `group`. Throws a NoSuchFileException, a
   * NotSharedYetException if the group has no access yet, or a PairException if another try may
   * succeed.
   */
  private[results] def open(path: Path, group: Option[String]): BlockFile =
    open(NamedFile.open(path, group))

  /** X1, from the check of the header on. Closes `file` if it fails. */
  private[results] def open(file: NamedFile): BlockFile = PairFile.closedOnError(file) { file =>
    val header =
      BlockFileHeader.read(file.path, headerOf(file.path, file.channel), file.channel.size())
    if (!lock(file))
      throw new PairException(
        s"${file.path}: another process holds an exclusive lock on READER_LOCK_BYTE: it may be removing this file")
    if (!file.isNamed)
      throw new PairException(s"${file.path} was removed or replaced while it was opened")
    new BlockFile(file, header)
  }

  /**
   * If another class loader has the file open in this JVM, the lock is there: that one closes the
   * file when its name is gone, and a lock protects the name.
   */
  private def lock(file: NamedFile): Boolean =
    try file.channel.tryLock(Constant.READER_LOCK_BYTE, 1, true) != null
    catch { case _: OverlappingFileLockException => true }

  /** What an unsealed file says of its rank. Throws a NoSuchFileException if there is none. (X2) */
  private[results] def progress(path: Path, group: Option[String]): Progress = {
    val file = NamedFile.open(path, group)
    try progress(file, file.isLockedByRank)
    finally file.close()
  }

  /**
   * The steps of X2. A rank renames or aborts its file before it drops its lock, so the lock
   * (`isLocked`) is tested first.
   */
  private[results] def progress(file: NamedFile, isLocked: => Boolean): Progress =
    if (!BlockFileHeader.hasMagic(BlockFileFields.bytes(file.channel, 0, At.SIZE))) Created
    else {
      val wasLocked = isLocked
      val bytes = BlockFileFields.bytes(file.channel, 0, At.SIZE)
      if (bytes.getInt(At.version) != 0) BlockFileHeader.requireKnown(file.path, bytes)
      if (bytes.getInt(At.`sealed`) == Constant.SEALED_ABORTED)
        Aborted(BlockFileHeader.rankFailure(bytes))
      else if (wasLocked) Writing
      else if (file.isNamed) Died
      else Renamed
    }

  sealed trait Progress

  /** Its rank has just created the file, and has not locked it yet. */
  case object Created extends Progress
  case object Writing extends Progress
  case object Died extends Progress

  /** The name no longer leads to this file: the rank has sealed it, or it is removed. */
  case object Renamed extends Progress
  final case class Aborted(reason: String) extends Progress

  private def headerOf(path: Path, channel: FileChannel): ByteBuffer = {
    if (nativeOrder != LITTLE_ENDIAN)
      throw new ContractException(s"$path: this machine is big-endian, and block files are not")
    val size = channel.size()
    if (size < Constant.RING_OFFSET)
      throw new ContractException(
        s"$path was cut: it has $size bytes, and its header's file_bytes is ${Constant.RING_OFFSET} or more")
    BlockFileFields.headerOf(channel)
  }
}

/**
 * What the header of a sealed block file says, copied once: the file may change later. `run`: that
 * of the rank's pair, or 0.
 */
private[supply] final case class BlockFileHeader(
    generation: Long,
    rank: Int,
    run: Long,
    fileBytes: Long,
    blockBytes: Int,
    blockCount: Int,
    elements: Long,
    schema: Schema) {
  /** Where that block begins in the file. */
  def blockOffset(index: Int): Long = schema.blockFileRingOffset + index.toLong * blockBytes

  /** The most bytes that this block may have; the last block has exactly these. */
  def spaceOf(index: Int): Long = math.min(blockBytes.toLong, fileBytes - blockOffset(index))
}

private[supply] object BlockFileHeader {
  /** Of a file whose rank has stored `version`; `bytes`: what [[BlockFileFields.headerOf]] returns. */
  private[results] def read(path: Path, bytes: ByteBuffer, fileSize: Long): BlockFileHeader = {
    val fields = BlockFileFields.read(bytes, Constant.FILE_USE_RESULT, refuse(path))
    import fields.{blockBytes, blocks, elements, fileBytes}
    if (!fields.isSealed) refuse(path)("sealed", bytes.getInt(At.`sealed`))
    if (elements < blocks || (elements > 0 && blocks == 0)) refuse(path)("epoch_elements", elements)
    val end = fields.schema.blockFileRingOffset + blocks * blockBytes.toLong
    if (fileBytes > end || (blocks > 0 && fileBytes <= end - blockBytes) || (blocks == 0 && fileBytes != end))
      refuse(path)("file_bytes", s"$fileBytes (with $blocks blocks of $blockBytes)")
    requireWhole(path, fileBytes, fileSize)
    requireTypes(path, fields.schema)
    BlockFileHeader(fields.generation, fields.rank, fields.run, fileBytes, blockBytes, blocks,
      elements, fields.schema)
  }

  private def refuse(path: Path)(field: String, value: Any): Nothing =
    throw new ContractException(field match {
      case "magic" => s"$path is not a block file of a rank (its magic is $value)"
      case "version" =>
        s"$path has version $value, and this Spark reads ${Layout.versionText(Layout.version)}: " +
          "build both sides from one release"
      case "byte_order" =>
        s"$path: the header's byte_order is $value: it is from a machine with another byte order"
      case _ =>
        s"$path: the header's $field is $value, which proto/PROTOCOL.md does not allow"
    })

  /** Refuses a file that was cut after it was sealed. */
  private[results] def requireWhole(path: Path, fileBytes: Long, fileSize: Long): Unit =
    if (fileSize < fileBytes)
      throw new ContractException(
        s"$path was cut after it was sealed: it has $fileSize bytes, and its header's file_bytes is $fileBytes")

  /** Refuses a file that is no block file of this major version and byte order. */
  private[results] def requireKnown(path: Path, bytes: ByteBuffer): Unit =
    BlockFileFields.requireKnown(bytes, refuse(path))

  /** Whether the rank has written its magic, right or wrong: from then on it holds its lock. */
  private[results] def hasMagic(bytes: ByteBuffer): Boolean =
    BlockFileFields.magicOf(bytes).exists(_ != 0)

  private def requireTypes(path: Path, schema: Schema): Unit =
    schema.columns.find(column =>
      SparkTypes.typeOf(column).isEmpty || Try(column.entries.map(Format.of)).isFailure).foreach {
      column =>
        val child = if (column.childFormat.isEmpty) "" else s" of '${column.childFormat}'"
        throw new ContractException(
          s"$path: column '${column.name}' has the format '${column.format}'$child, which this version does not know")
    }

  /** Why the rank aborted the result. */
  private[results] def rankFailure(bytes: ByteBuffer): String =
    Text.read(bytes, At.rankFailure, Layout.FailureTextBytes)
}

/**
 * A block file of this user or a member of `group`, open for reading. Its name may lead to another
 * file later.
 */
private[results] final class NamedFile private (
    val path: Path, group: Option[String], val key: AnyRef, val channel: FileChannel)
    extends AutoCloseable {
  /** Whether the name still leads to this file. */
  def isNamed: Boolean =
    try NamedFile.keyOf(path) == key
    catch { case _: NoSuchFileException => false }

  /** Whether the rank that writes it lives. */
  def isLockedByRank: Boolean = MappedFile.isLockedByRank(channel)

  /** What the name leads to now, open for writing. */
  def openForWriting(): FileChannel =
    Using.resource(PairFile.find(path, PairFile.Blocks, group))(_.open(WRITE))

  override def close(): Unit = channel.close()
}

private[results] object NamedFile {
  /**
   * Throws a NoSuchFileException, or a NotSharedYetException if the group has no access yet. The key
   * is from before the file is opened: Java has none of an open file.
   */
  def open(path: Path, group: Option[String]): NamedFile =
    Using.resource(PairFile.find(path, PairFile.Blocks, group)) { found =>
      new NamedFile(path, group, found.key, found.open(READ))
    }

  /** Device and inode of the file that the name leads to. */
  def keyOf(path: Path): AnyRef =
    Files.readAttributes(path, classOf[BasicFileAttributes], LinkOption.NOFOLLOW_LINKS).fileKey
}
