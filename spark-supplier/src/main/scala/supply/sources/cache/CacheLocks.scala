package supply.sources.cache

import java.nio.channels.{FileChannel, FileLock, OverlappingFileLockException}
import java.nio.file.{Path, StandardOpenOption}

/**
 * The locks of a cache: two bytes of one file for each key, one shared by the users of a copy and
 * one for the process that fetches it. A JVM opens the file once and never closes it: it loses all
 * its locks on a file when any of its channels on that file is closed.
 */
private[cache] final class CacheLocks(file: Path) {
  private val channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.READ,
    StandardOpenOption.WRITE)
  // Until a long fetch ends, the file would look as old as its last use.
  CacheFolder.touch(file)

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
