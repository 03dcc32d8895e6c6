package supply.lmdb

import java.io.{IOException, InputStream}
import java.nio.ByteBuffer
import java.nio.channels.{FileChannel, FileLock}
import java.nio.file.{Files, Path, Paths, StandardCopyOption, StandardOpenOption}
import java.util.concurrent.locks.ReentrantLock

import scala.jdk.CollectionConverters._

import org.slf4j.LoggerFactory

import supply.core.{Deadline, JvmState, SourceException}

/**
 * Where and how much (None: half of the file system) a node may cache. A wait for another process's
 * fetch fails after `timeout` seconds without progress.
 */
private[supply] final case class CacheSettings(folder: String, limit: Option[Long], timeout: Double)

/** Copies of remote files, fetched once for all runs of a node. Unused ones yield to new ones. */
private[supply] object NodeCache {
  private final val ChunkBytes = 4 << 20
  private final val PollMillis = 200L

  /** Bytes per second that any disk writes. */
  private final val SlowestDisk = 10e6

  private val log = LoggerFactory.getLogger(getClass)

  /** The lock files that this JVM has open, by cache. */
  private val locks = JvmState.map[Path, FileChannel]("cacheLocks").asScala

  /** The copies that this JVM uses. It holds their locks until it exits. */
  private val inUse = JvmState.map[(Path, String), FileLock]("cacheCopies").asScala

  /** One thread of this JVM at a time fetches a copy; its locks are those of the whole process. */
  private val fetching = JvmState.map[(Path, String), ReentrantLock]("cacheFetches")

  /** The lengths of the copies that this JVM fetches: each has room for its whole length. */
  private val incomingOfJvm = JvmState.map[(Path, String), Long]("cacheLengths")
  private val incoming = incomingOfJvm.asScala

  /** The local copy of that file. If it must be fetched, `fetched` gets the bytes of each chunk. */
  def get(file: RemoteFile, settings: CacheSettings, fetched: Long => Unit): Path = {
    val path = Paths.get(settings.folder).toAbsolutePath.normalize
    val key = (path, file.key)
    used(key).getOrElse {
      val lock = fetching.computeIfAbsent(key, _ => new ReentrantLock)
      awaitFetch("thread", file, new CacheFolder(path), settings)(lock.tryLock())
      try used(key).getOrElse {
          val use = acquire(file, path, settings, fetched)
          inUse.update(key, use)
          copyOf(key)
        }
      finally lock.unlock()
    }
  }

  private def used(key: (Path, String)): Option[Path] = inUse.get(key).map(_ => copyOf(key))

  private def copyOf(key: (Path, String)): Path = new CacheFolder(key._1).complete(key._2)

  private def acquire(file: RemoteFile, cache: Path, settings: CacheSettings,
      fetched: Long => Unit): FileLock = {
    val folder = new CacheFolder(cache)
    folder.prepare()
    try acquire(file, folder, settings, fetched)
    catch {
      case e: IOException => throw new SourceException(
          s"cannot fetch ${file.uri} into the cache $cache: $e (--lmdb-cache)", e)
    }
  }

  /** Releases the copies of a cache that this JVM uses, as its exit would. */
  private[lmdb] def forget(cache: Path): Unit =
    inUse.keys.filter(_._1 == cache).toSeq.foreach(key => inUse.remove(key).foreach(_.release()))

  private def acquire(file: RemoteFile, folder: CacheFolder, settings: CacheSettings,
      fetched: Long => Unit): FileLock = {
    val locksOfCache = new CacheLocks(incomingOfJvm.synchronized {
      // Locks on a removed file exclude nobody.
      if (!Files.exists(folder.lockFile)) locks -= folder.path
      locks.getOrElseUpdate(folder.path, CacheLocks.open(folder.lockFile))
    })
    // From here on nobody removes the copy. A process that removes one holds its lock only briefly.
    val use = new Deadline(settings.timeout).find(PollMillis)(locksOfCache.tryUse(file.key))
      .getOrElse(throw new SourceException(
          s"${folder.path} is locked by a process that removes a copy (--timeout)",
          isTimeout = true))
    var done = false
    try {
      awaitCopy(file, folder, locksOfCache, settings, fetched)
      folder.touch(file.key)
      done = true
      use
    } finally if (!done) use.release()
  }

  /** Fetches the copy, or waits for the process that does. */
  private def awaitCopy(
      file: RemoteFile, folder: CacheFolder, locks: CacheLocks, settings: CacheSettings,
      fetched: Long => Unit): Unit = {
    val copy = folder.complete(file.key)
    awaitFetch("process", file, folder, settings) {
      Files.exists(copy) || locks.tryFetch(file.key).exists { lock =>
        try if (!Files.exists(copy)) fetch(file, folder, locks, settings, fetched)
        finally lock.release()
        true
      }
    }
  }

  /** Waits for `isOver` as long as another thread or process (`who`) makes progress with its fetch. */
  private def awaitFetch(who: String, file: RemoteFile, folder: CacheFolder,
      settings: CacheSettings)(isOver: => Boolean): Unit = {
    val deadline = new Deadline(settings.timeout)
    var seen = -1L
    def isOverOrSeen: Boolean = isOver || {
      val size =
        try Files.size(folder.part(file.key))
        catch { case _: IOException => 0L }
      // After the last byte it flushes its pages to the disk, which changes no size.
      val flushing = if (size == file.length) file.length / SlowestDisk else 0.0
      if (size != seen) deadline.restart(settings.timeout + flushing)
      seen = size
      false
    }
    // The last check may have seen progress.
    while (!deadline.poll(PollMillis)(isOverOrSeen)) if (deadline.passed) {
      throw new SourceException(
        f"another $who%s of this node fetches ${file.uri}%s into ${folder.path}%s and has received nothing " +
          f"for ${deadline.seconds}%.0f s (it has $seen%d of ${file.length}%d bytes): end it, or raise --timeout",
        isTimeout = true)
    }
  }

  /** Runs under the fetch lock, so the process that left a part is dead. */
  private def fetch(
      file: RemoteFile, folder: CacheFolder, locks: CacheLocks, settings: CacheSettings,
      fetched: Long => Unit): Unit = {
    val part = folder.part(file.key)
    Files.deleteIfExists(part)
    incomingOfJvm.synchronized {
      makeRoom(file, folder, locks, settings)
      incoming((folder.path, file.key)) = file.length
    }
    // If no job waits for the copy alone, a task does, and otherwise seems to do nothing.
    log.info(f"fetching ${file.uri}%s (${file.length / 1e9}%.3f GB) into ${folder.path}%s")
    var done = false
    try {
      Files.createDirectories(part.getParent)
      Files.writeString(part.resolveSibling("source"), file.describe)
      val from = file.open()
      try copy(from, part, file, fetched)
      finally from.close()
      file.requireUnchanged()
      Files.move(part, folder.complete(file.key), StandardCopyOption.ATOMIC_MOVE)
      done = true
    } finally {
      incoming -= ((folder.path, file.key))
      if (!done) folder.remove(file.key)
    }
  }

  private def copy(from: InputStream, to: Path, file: RemoteFile, fetched: Long => Unit): Unit = {
    val out = FileChannel.open(to, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)
    try {
      val chunk = new Array[Byte](ChunkBytes)
      var total = 0L
      var count = from.read(chunk)
      while (count >= 0) {
        val bytes = ByteBuffer.wrap(chunk, 0, count)
        while (bytes.hasRemaining) out.write(bytes)
        total += count
        fetched(count.toLong)
        count = from.read(chunk)
      }
      if (total != file.length) throw new SourceException(
        s"${file.uri} gave $total bytes, not ${file.length}: has it changed?")
      // A file with the final name must be complete even after a crash of the machine.
      out.force(true)
    } finally out.close()
  }

  private def makeRoom(file: RemoteFile, folder: CacheFolder, locks: CacheLocks,
      settings: CacheSettings): Unit = {
    val limit = settings.limit.getOrElse(folder.totalBytes / 2)
    if (file.length > limit)
      throw new SourceException(
        s"${file.uri} has ${file.length} bytes, the cache ${folder.path} may hold $limit: raise --lmdb-cache-size")
    abandoned(file, folder).foreach(remove(_, folder, locks))
    // By key: a copy is complete a moment before it is no longer fetched.
    def held = (folder.copies.map(copy => copy.key -> copy.bytes) ++ incoming.collect {
      case ((folder.path, key), bytes) => key -> bytes
    }).toMap.values.sum
    def tooFull = held + file.length > limit || folder.freeBytes < file.length
    val oldest = folder.copies.sortBy(_.used).map(_.key).iterator
    while (tooFull && oldest.hasNext) remove(oldest.next(), folder, locks)
    if (tooFull)
      throw new SourceException(
        s"no room for ${file.uri} in the cache ${folder.path}: it has ${file.length} bytes, ${folder.freeBytes} are " +
          s"free, and of the $limit that the cache may hold $held are in use: raise --lmdb-cache-size, or name " +
          "a folder on another file system by --lmdb-cache")
  }

  /** Copies whose fetch was interrupted. */
  private def abandoned(file: RemoteFile, folder: CacheFolder): Seq[String] =
    folder.folders.filter(key => key != file.key && !Files.exists(folder.complete(key)))

  /** Removes a copy unless it is in use or being fetched. */
  private def remove(key: String, folder: CacheFolder, locks: CacheLocks): Unit =
    if (used((folder.path, key)).isEmpty) locks.tryRemove(key).foreach { lock =>
      try folder.remove(key)
      finally lock.release()
    }
}
