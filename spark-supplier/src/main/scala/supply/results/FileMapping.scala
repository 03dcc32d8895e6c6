package supply.results

import java.nio.{Buffer, MappedByteBuffer}
import java.nio.channels.FileChannel
import java.nio.file.Path

import supply.pair.MappedFile

/** The blocks of a file in memory, in windows of whole blocks: a buffer has at most 2 GiB. */
private[results] final class FileMapping(
    path: Path, channel: FileChannel, header: BlockFileHeader) {
  import FileMapping._

  private val windowBlocks = WindowBytes / header.blockBytes
  private val windows: Array[MappedByteBuffer] =
    Array.range(0, header.blockCount, windowBlocks).map { first =>
      val last = math.min(first + windowBlocks, header.blockCount) - 1
      val start = header.blockOffset(first)
      MappedFile.map(path, channel, FileChannel.MapMode.READ_ONLY, start,
        header.blockOffset(last) + header.spaceOf(last) - start)
    }

  /** Address of the first byte of a block. */
  def address(block: Int): Long =
    addressOf(windows(block / windowBlocks)) + (block % windowBlocks).toLong * header.blockBytes

  /** The addresses must not be used afterwards. */
  def unmap(): Unit = windows.foreach(MappedFile.unmap)
}

private object FileMapping {
  final val WindowBytes = 1 << 30

  private val addressOffset =
    MappedFile.unsafe.objectFieldOffset(classOf[Buffer].getDeclaredField("address"))

  private def addressOf(buffer: MappedByteBuffer): Long =
    MappedFile.unsafe.getLong(buffer, addressOffset)
}
