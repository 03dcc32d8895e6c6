package supply.results

import java.nio.channels.FileChannel
import java.nio.file.{Files, LinkOption, NoSuchFileException, Path}
import java.nio.file.StandardOpenOption.{READ, WRITE}
import java.nio.file.attribute.BasicFileAttributes

import scala.util.Using

import supply.pair.{MappedFile, PairFile}

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
