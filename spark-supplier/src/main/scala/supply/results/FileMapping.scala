package supply.results

import java.nio.channels.FileChannel
import java.nio.file.Path
import java.nio.MappedByteBuffer

import org.apache.spark.unsafe.Platform

import supply.core.{Buffers, ContractException}
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
    Buffers.addressOf(
      windows(block / windowBlocks)) + (block % windowBlocks).toLong * header.blockBytes

  /** The addresses must not be used afterwards. */
  def unmap(): Unit = windows.foreach(MappedFile.unmap)
}

private object FileMapping {
  final val WindowBytes = 1 << 30
}

/**
 * Reads the memory of a mapped file. If another process cuts the file, its memory is gone, and the
 * JVM throws an InternalError: here, or later in code that is compiled ([[OpenResults]]). Spark
 * would end the executor for it. `where`: file and block, for the message.
 */
private[results] final class MappedMemory(where: String) {
  def byte(address: Long): Byte =
    try Platform.getByte(null, address)
    catch { case e: InternalError => gone(e) }

  def short(address: Long): Short =
    try Platform.getShort(null, address)
    catch { case e: InternalError => gone(e) }

  def int(address: Long): Int =
    try Platform.getInt(null, address)
    catch { case e: InternalError => gone(e) }

  def long(address: Long): Long =
    try Platform.getLong(null, address)
    catch { case e: InternalError => gone(e) }

  def float(address: Long): Float =
    try Platform.getFloat(null, address)
    catch { case e: InternalError => gone(e) }

  def double(address: Long): Double =
    try Platform.getDouble(null, address)
    catch { case e: InternalError => gone(e) }

  /** Copies `bytes` into an array whose first value lies at `offset`, and returns the array. */
  def copy[A <: AnyRef](address: Long, array: A, offset: Int, bytes: Long): A =
    try {
      Platform.copyMemory(null, address, array, offset.toLong, bytes)
      array
    } catch { case e: InternalError => gone(e) }

  /** Bit `index` of a bitmap. */
  def bit(bitmap: Long, index: Int): Boolean =
    (byte(bitmap + (index >> 3)) & (1 << (index & 7))) != 0

  private def gone(e: InternalError): Nothing =
    throw new ContractException(s"$where: the file was cut after it was sealed ($e)")
}
