package supply.pair

import java.io.IOException
import java.nio.file.{FileAlreadyExistsException, Files, Path}
import java.nio.file.LinkOption.NOFOLLOW_LINKS
import java.nio.file.attribute.{PosixFileAttributes, PosixFileAttributeView, PosixFilePermission}
import java.nio.file.attribute.PosixFilePermission.{GROUP_EXECUTE, GROUP_READ, OTHERS_EXECUTE, OTHERS_READ}
import java.nio.file.attribute.PosixFilePermissions

import supply.core.ConfigException
import supply.data.ForeignFile

/** Makes the folder of resident files on this node. */
object ResidentFolder {
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
