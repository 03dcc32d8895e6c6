package supply.results

import java.io.IOException
import java.nio.channels.FileChannel
import java.nio.file.{Files, NoSuchFileException, Path}
import java.util.concurrent.{Callable, ExecutionException, TimeUnit}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

import supply.core.{Deadline, PairException, ResultGoneException, Threads}
import supply.protocol.Layout.Constant

/**
 * The block files that this JVM has open. A file stays mapped and locked when its reader is closed,
 * because Spark may keep strings that point into it. It is unmapped when it has been removed and no
 * task uses it. All calls may come from any thread.
 */
private[supply] object OpenResults {
  private val log = LoggerFactory.getLogger(getClass)
  private val sweepSeconds = 10L

  /** By device and inode: a name may stand for the result of another run later. */
  private val open = mutable.Map.empty[AnyRef, Entry]
  private var sweeps = false

  private final class Entry(val file: BlockFile, val isInOwnFolder: Boolean) {
    var users = 0
    var isReleased = false
  }

  /** A task's use of a file. */
  final class Use private[OpenResults] (entry: Entry) extends AutoCloseable {
    private var closed = false

    def header: BlockFileHeader = entry.file.header

    /** A block, which begins with that element. */
    def block(index: Int, firstElement: Long): Block = entry.file.block(index, firstElement)

    /**
     * Refuses a file that was cut. Call it before and after each block: what was read from memory
     * that is gone has no meaning. The JVM reports such a read later, at the latest here.
     */
    def requireWhole(): Unit =
      try FileThread.run(entry.file.requireWhole())
      catch { case _: InternalError => FileThread.run(entry.file.requireWhole()) }

    override def close(): Unit = FileThread.run {
      if (!closed) {
        closed = true
        entry.users -= 1
        sweep()
      }
    }
  }

  /** Opens a sealed file, if it is not open. Throws a NoSuchFileException if there is none. */
  private[results] def find(path: ResultPath): BlockFileHeader =
    FileThread.run(entryOf(path).file.header)

  /** What the unsealed file says. Throws a NoSuchFileException if there is none. */
  private[results] def progress(path: ResultPath): BlockFile.Progress =
    FileThread.run(BlockFile.progress(path.unsealed, path.group))

  /**
   * Keeps the file mapped until the use is closed, at the end of a task. Throws a
   * ResultGoneException if there is no file of that generation.
   */
  def use(path: ResultPath, generation: Long): Use = FileThread.run {
    val entry =
      try entryOf(path)
      catch { case e: NoSuchFileException => throw gone(path, e) }
    if (entry.file.header.generation != generation) throw gone(path, null)
    entry.users += 1
    new Use(entry)
  }

  /** Removes the file if it has that generation, and unmaps it as soon as no task uses it. */
  def remove(path: ResultPath, generation: Long): Unit = {
    try {
      val entry = FileThread.run(entryOf(path))
      if (entry.file.header.generation == generation)
        try delete(entry)
        finally FileThread.run(entry.isReleased = true)
    } catch {
      case _: NoSuchFileException => ()
      case NonFatal(e) => log.warn(
          s"cannot remove the released result ${path.file}: its rank does when it opens its pair again, or supply-clean",
          e)
    }
    FileThread.run(sweep())
  }

  /** Removes all files that this JVM has open: the session has ended. */
  def removeAll(): Unit = {
    FileThread.run(open.values.toSeq.filter(isLinked)).foreach { entry =>
      try delete(entry)
      catch { case NonFatal(e) => log.warn(s"cannot remove ${entry.file.path}", e) }
    }
    FileThread.run(sweep())
  }

  private def delete(entry: Entry): Unit = {
    entry.file.remove()
    if (entry.isInOwnFolder) {
      try Files.delete(entry.file.path.getParent)
      catch { case _: IOException => () } // Another result is in it.
    }
  }

  /** Paths of the files that are mapped, for tests. */
  private[supply] def paths: Seq[Path] = FileThread.run(open.values.map(_.file.path).toSeq)

  private def gone(path: ResultPath, cause: Throwable) = new ResultGoneException(
    s"${path.file} is no longer there: the result was released, or its ranks have started anew. Load it again",
    cause)

  private def entryOf(path: ResultPath): Entry =
    open.getOrElse(NamedFile.keyOf(path.whenSealed), {
        val entry = new Entry(BlockFile.open(path.whenSealed, path.group), path.isInOwnFolder)
        open.update(entry.file.key, entry)
        startSweeping()
        entry
      })

  /** Whether the file can still be found. */
  private def isLinked(entry: Entry): Boolean =
    try entry.file.isNamed
    catch { case _: IOException => false }

  /** Unmaps what is released, and what another executor of this node or a rank has removed. */
  private def sweep(): Unit =
    open.values.toSeq.filter(_.users == 0).filter(entry => entry.isReleased || !isLinked(entry))
      .foreach { entry =>
        open.remove(entry.file.key)
        entry.file.close()
      }

  private def startSweeping(): Unit = if (!sweeps) {
    sweeps = true
    FileThread.repeat(sweepSeconds)(sweep())
  }
}

/**
 * The one thread of this JVM that opens, probes and closes block files. Nobody interrupts it, as
 * Spark interrupts tasks: an interrupt closes a channel. And no two probes meet: when any channel
 * of a file is closed, the JVM drops all its locks on the file.
 */
private[results] object FileThread {
  private val thread = Threads.scheduler("supply-results")

  /** Runs `body` there and waits for it, also if this thread is interrupted: it is short. */
  def run[A](body: => A): A = {
    val work = thread.submit((() => body): Callable[A])
    var result = Option.empty[A]
    var wasInterrupted = false
    try {
      while (result.isEmpty) {
        try result = Some(work.get())
        catch { case _: InterruptedException => wasInterrupted = true }
      }
      result.get
    } catch { case e: ExecutionException => throw e.getCause }
    finally if (wasInterrupted) Thread.currentThread().interrupt()
  }

  /** Runs `body` there periodically, also after it has failed. */
  def repeat(seconds: Long)(body: => Unit): Unit = {
    thread.scheduleWithFixedDelay(
      () => Threads.logging("the check which open results were removed")(body), seconds, seconds,
      TimeUnit.SECONDS)
    ()
  }
}

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
   * remover does not unlock it, and an IOException if this user may not change it. Waits in the caller's thread:
   * tasks that read other files need [[FileThread]] meanwhile.
   */
  def apply(): Unit = {
    var held = Option.empty[String]
    def isGone = {
      held = FileThread.run(attempt())
      held.isEmpty
    }
    if (!new Deadline(seconds).poll(pollMillis)(isGone))
      throw new PairException(s"${file.path}${held.get}")
  }

  /** None: the file is gone. Otherwise who has a lock. */
  private def attempt(): Option[String] =
    try if (file.isNamed) withLock(open()) else None
    catch { case _: NoSuchFileException => None }

  private def open(): FileChannel = {
    if (channel.isEmpty) channel = Some(file.openForWriting())
    channel.get
  }

  private def withLock(writable: FileChannel): Option[String] =
    Option(writable.tryLock(Constant.REMOVER_LOCK_BYTE, 1, false)) match {
      case None => Some(": another process holds REMOVER_LOCK_BYTE")
      case Some(lock) =>
        try if (isLockedByRank(file)) Some(" is sealed, but its rank still holds RANK_LOCK_BYTE")
          else {
            if (file.isNamed) Files.delete(file.path)
            None
          }
        finally lock.release()
    }

  override def close(): Unit = channel.foreach(_.close())
}

private object BlockFileRemoval {
  /** How long another process may hold a lock of the file: a rank that seals, a remover. */
  private val seconds = 1.0
  private val pollMillis = 10L
}
