package supply.results

import java.nio.ByteBuffer
import java.nio.ByteOrder.{LITTLE_ENDIAN, nativeOrder}
import java.nio.channels.FileChannel
import java.nio.file.Path

import supply.core.{ContractException, PairException}
import supply.pair.BlockFileFields
import supply.protocol.Layout.{Constant, MappedFileHeader => At}

/**
 * A sealed block file, mapped, with the shared lock of a reader. All calls but [[block]] must come
 * from one thread that nobody interrupts ([[OpenResults]]): an interrupt closes the channel, and
 * with it the lock.
 */
final class BlockFile private (file: NamedFile, val header: BlockFileHeader)
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

object BlockFile {
  /**
   * Opens a sealed file of this user or a member of `group`. Throws a NoSuchFileException, a
   * NotSharedYetException if the group has no access yet, or a PairException if another try may
   * succeed.
   */
  private[results] def open(path: Path, group: Option[String]): BlockFile =
    open(NamedFile.open(path, group))

  /** X1, from the check of the header on. Closes `file` if it fails. */
  private[results] def open(file: NamedFile): BlockFile = {
    var opened = false
    try {
      val header =
        BlockFileHeader.read(file.path, headerOf(file.path, file.channel), file.channel.size())
      if (file.channel.tryLock(Constant.READER_LOCK_BYTE, 1, true) == null)
        throw new PairException(
          s"${file.path}: another process holds an exclusive lock on READER_LOCK_BYTE: it may be removing this file")
      if (!file.isNamed)
        throw new PairException(s"${file.path} was removed or replaced while it was opened")
      val result = new BlockFile(file, header)
      opened = true
      result
    } finally if (!opened) file.close()
  }

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
    BlockFileFields.bytes(channel, 0, Constant.RING_OFFSET)
  }
}
