package supply.pair

import java.nio.channels.FileChannel
import java.nio.file.Path

import supply.core.ContractException
import supply.protocol.Layout.{BlockHeader, Constant}
import supply.protocol.Notification

/** Finds the blocks of a resident file by their own headers. */
private[pair] object ResidentFileBlocks {
  /** The first `count` blocks. */
  def read(path: Path, channel: FileChannel, header: ResidentFileHeader, count: Int)
      : IndexedSeq[Notification] = (0 until count).map { k =>
    val at = header.offsetOf(k)
    val block = Notification.read(
      BlockFileFields.bytes(channel, at, BlockHeader.SIZE), BlockHeader.notification)
    if (!isBlock(block, header, k))
      throw new ContractException(s"$path: block $k is not what its header says: remove the file")
    block
  }

  /** Where a file of these blocks ends. */
  def end(blocks: IndexedSeq[Notification]): Long =
    blocks.lastOption.fold(Constant.RING_OFFSET.toLong)(last => last.offset + last.size)

  private def isBlock(block: Notification, header: ResidentFileHeader, k: Int): Boolean =
    block.generation == header.generation && block.kind == Constant.NOTIFICATION_BLOCK &&
      block.sequence == k && block.epoch == 0 && block.offset == header.offsetOf(
        k) && block.file == 0 &&
      block.elementCount > 0 && block.firstElement >= 0 &&
      block.size >= BlockHeader.SIZE && block.size <= header.blockBytes
}
