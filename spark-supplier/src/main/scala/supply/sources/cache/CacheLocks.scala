package supply.sources.cache

import java.nio.channels.{FileChannel, FileLock, OverlappingFileLockException}
import java.nio.file.{Path, StandardOpenOption}

/**
 * The locks of a cache: two bytes of one file for each key, one held shared by whoever uses the
 * copy, one held by whoever fetches it. They end with their process.
 *
 * The file is opened once in a JVM and never closed: a JVM's locks on a file fall when any of its
 * channels on it is closed.
 */
private[cache] final class CacheLocks(file: Path) {
  private val channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.READ,
    StandardOpenOption.WRITE)
  // A fetch may take its time: till then the file would look as old as its last use.
  CacheFolder.touch(file)

  private def position(key: String) =
    (java.lang.Long.parseUnsignedLong(key.take(16), 16) >>> 2) << 1

  def tryUse(key: String): Option[FileLock] = attempt(position(key), 1, shared = true)

  def tryFetch(key: String): Option[FileLock] = attempt(position(key) + 1, 1, shared = false)

  /** Against both users and fetchers. */
  def tryRemove(key: String): Option[FileLock] = attempt(position(key), 2, shared = false)

  private def attempt(position: Long, bytes: Long, shared: Boolean): Option[FileLock] =
    try Option(channel.tryLock(position, bytes, shared))
    catch { case _: OverlappingFileLockException => None }
}
