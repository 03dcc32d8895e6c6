package supply.pair

import java.nio.channels.FileChannel
import java.nio.file.Path

import scala.util.control.NonFatal

import supply.core.{CutFileException, SourceException}

/** Whether a mapped file is still as long as it is now. */
private[pair] final class WholeFile(path: Path, channel: FileChannel) {
  private val bytes = currentBytes

  /**
   * Runs `body`, which uses the file's memory. If it fails and the file was cut meanwhile, throws a
   * CutFileException.
   *
   * The JVM has an InternalError for memory that is gone. Spark would end the process for it, also if
   * it is only the cause of another error.
   */
  def apply[A](body: => A): A =
    try {
      val result = body
      awaitFault()
      result
    } catch {
      case e: InternalError => throw cutAfterFault.getOrElse(new SourceException(
            s"$path: a file that its task reads was cut, or its disk failed (${e.getMessage})"))
      case NonFatal(e) => throw cutAfterFault.getOrElse(e)
    }

  /** Throws a CutFileException if the file was cut. */
  def require(): Unit = {
    apply(())
    cut.foreach(throw _)
  }

  /**
   * The JVM throws the InternalError here, and not in whatever the thread does next: when compiled
   * code has used the memory, it waits for a call into the JVM itself, and a system call is none.
   */
  private def awaitFault(): Unit = {
    Class.forName("java.lang.Object")
    ()
  }

  /** What ended with an error may have used the memory again. */
  private def cutAfterFault: Option[CutFileException] = {
    try awaitFault()
    catch { case _: InternalError => () }
    cut
  }

  private def cut: Option[CutFileException] =
    if (channel.isOpen && currentBytes < bytes) Some(new CutFileException(
        s"the mapped file $path was cut from $bytes to $currentBytes bytes while it was in use: no program may write to " +
          "it. Start both sides again"))
    else None

  /** An interrupt would close the channel, and so drop the task's lock. */
  private def currentBytes: Long = {
    val interrupted = Thread.interrupted()
    try channel.size()
    finally if (interrupted) Thread.currentThread().interrupt()
  }
}
