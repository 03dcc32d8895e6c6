package supply.pair

import java.io.IOException
import java.nio.channels.ClosedChannelException
import java.nio.file.{Files, Path}

import org.slf4j.LoggerFactory

import supply.core.{ConfigException, PairException}

/**
 * What a rank may write into the folder of its resident file, in bytes. `quota`: the rank's part of
 * what the run may write on this node. `expected`: about what it will write, if known.
 */
final class ResidentSpace(
    name: String, folder: Path, quota: Option[Long], expected: Option[Long]) {
  import ResidentSpace._

  private var written = 0L

  /** Warns before anything is written. The source may be sparse, or have unused pages. (F1) */
  def warnIfSmall(): Unit = shortage.foreach(log.warn)

  /** What is too small for the expected bytes. */
  private[pair] def shortage: Option[String] = {
    val free = Files.getFileStore(folder).getUsableSpace
    expected.filter(_ > quota.fold(free)(math.min(_, free))).map { bytes =>
      val part = quota.fold("")(most => s" and may write $most (its part of --resident-quota)")
      s"$name: the resident folder $folder may be too small: it has $free bytes free, and this rank " +
        s"needs about $bytes$part: if it gets full, the run fails"
    }
  }

  /** Counts bytes that are about to be written. Throws a ConfigException at the quota. */
  def add(bytes: Long): Unit = {
    if (quota.exists(_ < written + bytes)) refuseQuota()
    written += bytes
  }

  private def refuseQuota(): Nothing = throw new ConfigException(
    s"$name: this rank may write ${quota.mkString} bytes into the resident folder $folder, its part of --resident-quota, and " +
      s"needs ${expected.fold("more")(bytes => s"about $bytes")}; $written are written: set a larger quota, or leave " +
      "--resident-folder out")

  /** Runs `body`, which writes; names the folder in its errors. */
  def writing[A](body: => A): A =
    try body
    catch {
      // An interrupt closes the channel: the task is killed.
      case e: ClosedChannelException => throw e
      case e: IOException if isFull(e) =>
        throw new ConfigException(
          s"$name: the disk of the resident folder $folder is full (${e.getMessage}): $written bytes are written" +
            s"${expected.fold("")(bytes => s", of about $bytes")}: $larger",
          e)
      case e: IOException =>
        throw new PairException(s"$name: cannot write into the resident folder $folder: $e", e)
    }

  private def larger =
    "name a folder on a larger disk (--resident-folder), make space, or leave the option out"
}

private object ResidentSpace {
  private val log = LoggerFactory.getLogger(classOf[ResidentSpace])

  private def isFull(e: IOException): Boolean = Option(e.getMessage).exists(text =>
    Seq("No space left on device", "Disk quota exceeded", "File too large").exists(text.contains))
}
