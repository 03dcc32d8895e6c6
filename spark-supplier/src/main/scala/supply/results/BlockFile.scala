package supply.results

import java.nio.ByteBuffer
import java.nio.ByteOrder.{LITTLE_ENDIAN, nativeOrder}
import java.nio.channels.FileChannel
import java.nio.file.Path
import java.nio.file.StandardOpenOption.READ

import scala.util.Using

import supply.core.{ContractException, PairException}
import supply.pair.PairFile
import supply.protocol.Layout.{Constant, MappedFileHeader => At}

/**
 * A sealed block file, mapped, with the shared lock of a reader. All calls but [[block]] must come
 * from one thread that nobody interrupts ([[OpenResults]]): an interrupt closes the channel, and
 * with it the lock.
 */
final class BlockFile private (val path: Path, channel: FileChannel, val header: BlockFileHeader)
    extends AutoCloseable {
  private val mapping = new FileMapping(channel, header)

  /** Refuses a file that was cut after it was sealed. */
  private[results] def requireWhole(): Unit = {
    val size = channel.size()
    if (size < header.fileBytes)
      throw new ContractException(
        s"$path was cut after it was sealed: it has $size bytes, and its header's file_bytes is " +
          s"${header.fileBytes}")
  }

  /** A block, which begins with the element of that number. */
  def block(index: Int, firstElement: Long): Block =
    new BlockCheck(path, header, index, mapping.address(index)).block(
      firstElement)

  /** Unmaps the file: the memory of its blocks must not be used afterwards. */
  override def close(): Unit = {
    mapping.unmap()
    channel.close()
  }
}

object BlockFile {
  /**
   * Opens a sealed file of this user or a member of `group`. Throws a NoSuchFileException, or a
   * NotSharedYetException if the group has no access yet.
   */
  private[results] def open(path: Path, group: Option[String]): BlockFile =
    withChannel(path, group) { channel =>
      val header = BlockFileHeader.read(path, headerOf(path, channel), channel.size())
      if (channel.tryLock(Constant.READER_LOCK_BYTE, 1, true) == null)
        throw new PairException(
          s"$path: another process holds READER_LOCK_BYTE for itself alone: a remover may be at work")
      new BlockFile(path, channel, header)
    }

  /** What an unsealed file says: nothing yet, that its rank is alive or has died, or why it failed. */
  private[results] def progress(path: Path, group: Option[String]): Progress = {
    val channel = openChannel(path, group)
    try {
      val bytes = if (channel.size() < At.SIZE) ByteBuffer.allocate(At.SIZE)
      else read(channel, At.SIZE)
      val aborted = bytes.getInt(At.version) != 0 && {
        BlockFileHeader.requireKnown(path, bytes)
        bytes.getInt(At.`sealed`) == Constant.SEALED_ABORTED
      }
      if (aborted) Aborted(BlockFileHeader.rankFailure(bytes))
      else Unsealed(rankLives(channel))
    } finally channel.close()
  }

  sealed trait Progress
  final case class Unsealed(rankLives: Boolean) extends Progress
  final case class Aborted(reason: String) extends Progress

  private def rankLives(channel: FileChannel): Boolean = {
    val lock = channel.tryLock(Constant.RANK_LOCK_BYTE, 1, true)
    if (lock != null) lock.release()
    lock == null
  }

  private def headerOf(path: Path, channel: FileChannel): ByteBuffer = {
    if (nativeOrder != LITTLE_ENDIAN)
      throw new ContractException(s"$path: this machine is big-endian, and block files are not")
    val size = channel.size()
    if (size < Constant.RING_OFFSET)
      throw new ContractException(
        s"$path was cut: it has $size bytes, and its header's file_bytes is ${Constant.RING_OFFSET} or more")
    read(channel, Constant.RING_OFFSET)
  }

  private def read(channel: FileChannel, bytes: Int): ByteBuffer = {
    val buffer = ByteBuffer.allocate(bytes).order(LITTLE_ENDIAN)
    while (buffer.hasRemaining && channel.read(buffer, buffer.position()) >= 0) {}
    buffer
  }

  private def openChannel(path: Path, group: Option[String]): FileChannel =
    Using.resource(PairFile.find(path, PairFile.Blocks, group))(_.open(READ))

  private def withChannel(path: Path, group: Option[String])(
      body: FileChannel => BlockFile): BlockFile = {
    val channel = openChannel(path, group)
    var opened = false
    try {
      val file = body(channel)
      opened = true
      file
    } finally if (!opened) channel.close()
  }
}
