package supply.block

import java.io.IOException
import java.nio.channels.ClosedChannelException
import java.nio.file.LinkOption.NOFOLLOW_LINKS
import java.nio.file.attribute.PosixFilePermission.{GROUP_EXECUTE, GROUP_READ, OTHERS_EXECUTE, OTHERS_READ}
import java.nio.file.attribute.{PosixFileAttributeView, PosixFileAttributes, PosixFilePermission, PosixFilePermissions}
import java.nio.file.{FileAlreadyExistsException, Files, Path}

import org.slf4j.LoggerFactory

import supply.core.{ConfigException, PairException}
import supply.pair.PairFile
import supply.source.ForeignFile

/**
 * What a rank may write into the folder of its resident file, in bytes. `quota`: the rank's part of
 * what the run may write on this node. `expected`: about what it will write, if known.
 */
private[supply] final class ResidentSpace(
    name: String, folder: Path, quota: Option[Long], expected: Option[Long]) {
  import ResidentSpace._

  private var written = 0L

  /** Warns before anything is written. The source may be sparse, or have unused pages. (F1) */
  def warnIfSmall(): Unit = shortage.foreach(log.warn)

  /** What is too small for the expected bytes. */
  private[block] def shortage: Option[String] = {
    val free = folder.toFile.getUsableSpace
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

/** Makes the folder of resident files on this node. */
private[supply] object ResidentFolder {
  private val OwnerOnly = PosixFilePermissions.fromString("rwx------")
  private val OwnerAndGroup = PosixFilePermissions.fromString("rwxr-x---")

  /**
   * Makes it if it is missing: for this user, and to look names up for members of `group`. Throws a
   * ConfigException if it is another user's, or others can write to it.
   */
  def make(folder: Path, group: Option[String]): Unit =
    try {
      makeWithParents(folder, group)
      val permissions = PairFile.permissionsOfOwn(folder)
      // Also a folder that existed: another rank may be about to share it.
      group.filterNot(isOpenTo(_, folder, permissions)).foreach(share(folder, _))
      val kind = Files.getFileStore(folder).`type`()
      if (ForeignFile.isRemote(kind))
        throw new ConfigException(
          s"the resident folder $folder is on a file system of type $kind, which is not local to this node: name one on " +
            "a local disk (--resident-folder)")
    } catch {
      case e: IOException =>
        throw new ConfigException(
          s"cannot make or use the resident folder $folder: $e: name another one (--resident-folder)",
          e)
    }

  private def makeWithParents(folder: Path, group: Option[String]): Unit =
    if (Files.notExists(folder)) {
      Option(folder.getParent).foreach(makeWithParents(_, group))
      try {
        Files.createDirectory(folder, PosixFilePermissions.asFileAttribute(OwnerOnly))
        group.foreach(share(folder, _))
      } catch { case _: FileAlreadyExistsException => () }
    }

  private def isOpenTo(group: String, folder: Path, is: Set[PosixFilePermission]): Boolean = {
    val owning = Files.readAttributes(folder, classOf[PosixFileAttributes], NOFOLLOW_LINKS).group
    val wanted =
      if (owning == PairFile.named(group)) Set(GROUP_READ, GROUP_EXECUTE)
      else Set(OTHERS_READ, OTHERS_EXECUTE)
    wanted.subsetOf(is)
  }

  private def share(folder: Path, group: String): Unit = {
    val view = Files.getFileAttributeView(folder, classOf[PosixFileAttributeView])
    view.setGroup(PairFile.named(group))
    view.setPermissions(OwnerAndGroup)
  }
}
