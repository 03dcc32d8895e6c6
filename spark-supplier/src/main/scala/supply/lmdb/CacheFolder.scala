package supply.lmdb

import java.io.IOException
import java.nio.channels.{FileChannel, FileLock, OverlappingFileLockException}
import java.nio.file.attribute.{FileTime, PosixFileAttributes, PosixFilePermission, PosixFilePermissions}
import java.nio.file.{FileAlreadyExistsException, Files, LinkOption, Path, Paths, StandardOpenOption}

import scala.jdk.CollectionConverters._

import supply.core.SourceException

/** A complete copy: its folder, its size, and when it was last used. */
private[lmdb] final case class CachedCopy(key: String, bytes: Long, used: FileTime)

/** A node's cache: a folder per copy, named when it is complete, and one file for the locks. */
private[lmdb] final class CacheFolder(val path: Path) {
  def lockFile: Path = path.resolve("lock")

  /** The complete copy. */
  def complete(key: String): Path = path.resolve(key).resolve("data.mdb")

  /** The copy while it is being fetched. */
  def part(key: String): Path = path.resolve(key).resolve("data.mdb.part")

  /** Makes the folder if it is missing. Refuses a folder that another user can write. */
  def prepare(): Unit =
    try {
      Option(path.getParent).foreach(Files.createDirectories(_))
      try Files.createDirectory(path,
          PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")))
      catch { case _: FileAlreadyExistsException => () }
      val found =
        Files.readAttributes(path, classOf[PosixFileAttributes], LinkOption.NOFOLLOW_LINKS)
      val shared = found.permissions.asScala.exists(Set(PosixFilePermission.GROUP_WRITE,
          PosixFilePermission.OTHERS_WRITE))
      if (!found.isDirectory) throw new IOException("it is no folder")
      if (found.owner != Files.getOwner(Paths.get("/proc/self")))
        throw new IOException(s"it belongs to ${found.owner}")
      if (shared) throw new IOException("others can write to it: chmod go-w it")
    } catch {
      case e: IOException => throw new SourceException(
          s"the cache folder $path cannot be used: $e (--lmdb-cache names another)", e)
    }

  def copies: Seq[CachedCopy] = folders.filter(key => Files.exists(complete(key))).map { key =>
    CachedCopy(key, Files.size(complete(key)), Files.getLastModifiedTime(path.resolve(key)))
  }

  /** The keys of all copies, complete or not; other entries do not belong to the cache. */
  def folders: Seq[String] = {
    val entries = Files.newDirectoryStream(path, (entry: Path) => Files.isDirectory(entry))
    try entries.asScala.map(_.getFileName.toString).filter(RemoteFile.isKey).toSeq
    finally entries.close()
  }

  /** Marks copy and lock file as used. Programs that clean /var/tmp delete files by their age. */
  def touch(key: String): Unit = Seq(lockFile, path.resolve(key)).foreach(CacheFolder.touch)

  def remove(key: String): Unit = {
    // The complete file first: a half removed copy must not look like a copy.
    val files = Seq(complete(key), part(key), path.resolve(key).resolve("source"))
    files.foreach(Files.deleteIfExists)
    Files.deleteIfExists(path.resolve(key))
    ()
  }

  def freeBytes: Long = path.toFile.getUsableSpace

  def totalBytes: Long = path.toFile.getTotalSpace
}

private[lmdb] object CacheFolder {
  def touch(file: Path): Unit = {
    Files.setLastModifiedTime(file, FileTime.fromMillis(System.currentTimeMillis()))
    ()
  }
}

/**
 * The locks of a cache: two bytes of one file for each key, one shared by the users of a copy and
 * one for the process that fetches it. A JVM opens the file once and never closes it: it loses all
 * its locks on a file when any of its channels on that file is closed.
 */
private[lmdb] final class CacheLocks(channel: FileChannel) {
  private def position(key: String) =
    (java.lang.Long.parseUnsignedLong(key.take(16), 16) >>> 2) << 1

  def tryUse(key: String): Option[FileLock] = attempt(position(key), 1, shared = true)

  def tryFetch(key: String): Option[FileLock] = attempt(position(key) + 1, 1, shared = false)

  /** Excludes both users and fetchers. */
  def tryRemove(key: String): Option[FileLock] = attempt(position(key), 2, shared = false)

  private def attempt(position: Long, bytes: Long, shared: Boolean): Option[FileLock] =
    try Option(channel.tryLock(position, bytes, shared))
    catch { case _: OverlappingFileLockException => None }
}

private[lmdb] object CacheLocks {
  def open(file: Path): FileChannel = {
    val channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.READ,
      StandardOpenOption.WRITE)
    // Until a long fetch ends, the file would look as old as its last use.
    CacheFolder.touch(file)
    channel
  }
}
