package supply.results

import java.nio.channels.FileChannel
import java.nio.file.{Files, NoSuchFileException}

import supply.core.{Deadline, PairException}
import supply.protocol.Layout.Constant

/**
 * Removes a file that this JVM has open (proto/PROTOCOL.md, "Removal"). Its channel stays open until
 * [[close]]: when any channel of a file is closed, the JVM drops all its locks on the file.
 * `isLockedByRank`: whether the rank that has written the file still seals it.
 */
private[results] final class BlockFileRemoval(
    file: NamedFile, isLockedByRank: NamedFile => Boolean = _.isLockedByRank)
    extends AutoCloseable {
  import BlockFileRemoval._

  private var channel = Option.empty[FileChannel]

  /**
   * Removes the file if its name still leads to it. Throws a PairException if the rank or another
   * remover does not unlock it, and an IOException if this user may not change it.
   */
  def apply(): Unit =
    try if (file.isNamed) withLock(open())(removeUnlocked())
    catch { case _: NoSuchFileException => () }

  private def open(): FileChannel = {
    if (channel.isEmpty) channel = Some(file.openForWriting())
    channel.get
  }

  private def withLock(writable: FileChannel)(body: => Unit): Unit = {
    val lock = new Deadline(seconds).find(pollMillis)(
      Option(writable.tryLock(Constant.REMOVER_LOCK_BYTE, 1, false))).getOrElse(
      throw new PairException(s"${file.path}: another process holds REMOVER_LOCK_BYTE"))
    try body
    finally lock.release()
  }

  private def removeUnlocked(): Unit = {
    if (!new Deadline(seconds).poll(pollMillis)(!isLockedByRank(file)))
      throw new PairException(s"${file.path} is sealed, but its rank still holds RANK_LOCK_BYTE")
    if (file.isNamed) Files.delete(file.path)
  }

  override def close(): Unit = channel.foreach(_.close())
}

private object BlockFileRemoval {
  /** How long another process may hold a lock of the file: a rank that seals, a remover. */
  private val seconds = 1.0
  private val pollMillis = 10L
}
