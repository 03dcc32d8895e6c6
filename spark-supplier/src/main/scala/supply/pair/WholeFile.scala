package supply.pair

import java.nio.channels.FileChannel
import java.nio.file.Path

import scala.util.control.NonFatal

import supply.core.{CutFileException, SourceException, Threads}

/** Whether a mapped file is still as long as it is now. */
private[supply] final class WholeFile(path: Path, channel: FileChannel) {
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
  def require(): Unit = cut.foreach(throw _)

  /**
   * The JVM throws the InternalError here, and not in whatever the thread does next. When compiled
   * code has used the memory, the error waits until that code calls the JVM itself, as for an array
   * that is larger than a thread's own part of the heap. A native method is no such call (JDK 17: 100 of
   * 100 errors came here, and 1 of 100 with Class.forName).
   */
  private def awaitFault(): Unit = {
    WholeFile.large = new Array[Byte](1 << 20)
    WholeFile.large = null
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

  /** An interrupt would drop the task's lock, too. */
  private def currentBytes: Long = Threads.uninterrupted(channel.size())
}

private object WholeFile {
  /** The compiler would leave out an array that nobody can see. */
  @volatile var large: Array[Byte] = _
}
