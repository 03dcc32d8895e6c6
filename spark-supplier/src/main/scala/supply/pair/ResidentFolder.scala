package supply.pair

import java.io.IOException
import java.nio.file.{Files, Path}
import java.nio.file.attribute.{PosixFileAttributeView, PosixFilePermissions}

import supply.core.ConfigException
import supply.data.ForeignFile

/** Makes the folder of resident files on this node. */
object ResidentFolder {
  private val OwnerOnly = PosixFilePermissions.fromString("rwx------")
  private val OwnerAndGroup = PosixFilePermissions.fromString("rwxr-x---")

  /** Makes it if it is missing: for this user, and to look names up for members of `group`. */
  def make(folder: Path, group: Option[String]): Unit =
    try {
      if (Files.notExists(folder)) {
        Files.createDirectories(folder, PosixFilePermissions.asFileAttribute(OwnerOnly))
        group.foreach(share(folder, _))
      }
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

  private def share(folder: Path, group: String): Unit = {
    val view = Files.getFileAttributeView(folder, classOf[PosixFileAttributeView])
    view.setGroup(PairFile.named(group))
    view.setPermissions(OwnerAndGroup)
  }
}
