package supply.pair

import java.io.IOException
import java.nio.{ByteBuffer, MappedByteBuffer}
import java.nio.channels.{ClosedChannelException, FileChannel, OverlappingFileLockException}
import java.nio.file.Path

import scala.collection.mutable.ArrayBuffer

import supply.core.PairException
import supply.protocol.Layout.Constant

/** Where the header and the ring of a pair are, and whether its rank lives. */
private[supply] trait PairMemory extends AutoCloseable {
  def header: ByteBuffer

  /** What it has, in bytes. */
  def size: Long

  /** A part of the ring. */
  def map(offset: Long, bytes: Long): ByteBuffer

  /** Writes a wide schema, which lies there, after the ring. */
  def writeSchema(bytes: ByteBuffer, offset: Long): Unit

  /** Reads it, or as much as there is. */
  def readSchema(count: Int, offset: Long): ByteBuffer

  def rankLives: Boolean

  /** Keeps other attempts of this task out; false: another attempt holds it. */
  def lockForTask(): Boolean

  /** Throws a CutFileException if a part of it is gone. */
  def requireWhole(): Unit

  /** As [[WholeFile]]: for everything that uses it. */
  def whileWhole[A](body: => A): A
}

/** A mapped file. */
private[pair] final class FileMemory(path: Path, channel: FileChannel,
    override val header: MappedByteBuffer) extends PairMemory {
  private val whole = new WholeFile(path, channel)
  private val mapped = ArrayBuffer(header)

  override def size: Long = channel.size()

  override def map(offset: Long, bytes: Long): ByteBuffer = {
    requireWhole() // Java would make it longer again.
    mapped += MappedFile.map(path, channel, offset, bytes)
    mapped.last
  }

  /** By a call, not by memory: the rank has not reserved this space, and there may be none. */
  override def writeSchema(bytes: ByteBuffer, offset: Long): Unit =
    try while (bytes.hasRemaining) channel.write(bytes, offset + bytes.position())
    catch {
      case e: ClosedChannelException => throw e
      case e: IOException =>
        throw new PairException(
          s"$path: the ${bytes.limit()} bytes of the schema cannot be written after the ring (${e.getMessage}): " +
            "free memory of this file system, or give fewer columns or shorter names", e)
    }

  override def readSchema(count: Int, offset: Long): ByteBuffer = {
    val bytes = ByteBuffer.allocate(count)
    while (bytes.hasRemaining && channel.read(bytes, offset + bytes.position()) >= 0) {}
    bytes.flip()
  }

  override def rankLives: Boolean = MappedFile.isLockedByRank(channel)

  override def lockForTask(): Boolean =
    try channel.tryLock(Constant.TASK_LOCK_BYTE, 1, false) != null
    catch { case _: OverlappingFileLockException => false }

  override def requireWhole(): Unit = whole.require()

  override def whileWhole[A](body: => A): A = whole(body)

  override def close(): Unit = {
    channel.close()
    mapped.reverseIterator.foreach(MappedFile.unmap)
  }
}
