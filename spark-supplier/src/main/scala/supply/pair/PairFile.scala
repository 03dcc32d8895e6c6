package supply.pair

import java.io.IOException
import java.nio.channels.FileChannel
import java.nio.file.{AccessDeniedException, FileSystems, Files, LinkOption, NoSuchFileException, OpenOption, Path, Paths}
import java.nio.file.{SecureDirectoryStream, StandardOpenOption}
import java.nio.file.attribute.{GroupPrincipal, PosixFileAttributes, PosixFileAttributeView, PosixFilePermission}
import java.nio.file.attribute.{PosixFilePermissions, UserPrincipal, UserPrincipalNotFoundException}
import java.nio.file.attribute.PosixFilePermission._

import scala.jdk.CollectionConverters._
import scala.util.Using

import supply.core.ConfigException

/**
 * One of a pair's three files. Check and use look its name up in the open folder, which nobody can
 * replace between them. docs/SECURITY.md says what is refused, and why. `key`: device and inode of
 * the checked file.
 */
private[supply] final class PairFile private (
    path: Path, folder: SecureDirectoryStream[Path], val key: AnyRef) extends AutoCloseable {
  def open(end: StandardOpenOption*): FileChannel = {
    val options: Set[OpenOption] = end.toSet[OpenOption] + LinkOption.NOFOLLOW_LINKS
    folder.newByteChannel(path.getFileName, options.asJava).asInstanceOf[FileChannel]
  }

  override def close(): Unit = folder.close()
}

private[supply] object PairFile {
  sealed abstract class Kind(private[PairFile] val text: String,
      private[PairFile] val is: PosixFileAttributes => Boolean,
      private[PairFile] val usableByGroup: Set[PosixFilePermission])
  case object Mapped extends Kind("regular file", _.isRegularFile, Set(GROUP_READ, GROUP_WRITE))
  case object Pipe extends Kind("named pipe", _.isOther, Set(GROUP_READ, GROUP_WRITE))

  /** A block file, which is only read. */
  case object Blocks extends Kind("regular file", _.isRegularFile, Set(GROUP_READ))

  /** The group has no access. A caller waits, because the rank may be about to give it access. */
  final class NotSharedYetException(message: String) extends IOException(message)

  /** The user of this JVM's process. Java's properties may name another one. */
  private lazy val self: UserPrincipal = Files.getOwner(Paths.get("/proc/self"))

  private val changeable = Set(GROUP_WRITE, OTHERS_WRITE)
  private val usableByOthers = Set(OTHERS_READ, OTHERS_WRITE)
  private val sticky = 0x200
  private val OwnerOnly = Set(OWNER_READ, OWNER_WRITE)

  /**
   * Finds and checks a file of this user or of a member of `group`. Throws a NoSuchFileException, a
   * NotSharedYetException (the group has no access yet), or a ConfigException if it is not safe to
   * use. `isOfFailure`: only a failure is written, and no data; a file of this user may then be open
   * to others.
   */
  def find(
      path: Path, kind: Kind, group: Option[String], isOfFailure: Boolean = false): PairFile =
    closedOnError(openFolder(path, group)) { folder =>
      new PairFile(path, folder, check(path, kind, group.map(named), folder, isOfFailure))
    }

  /**
   * Creates a block file of this user, which members of `group` may read. Throws a
   * FileAlreadyExistsException, or a ConfigException if its folder is not safe to use.
   */
  def create(path: Path, group: Option[String]): FileChannel =
    Using.resource(openFolder(path, group)) { folder =>
      checkOwn(path.getParent, folder)
      val options = Set[OpenOption](StandardOpenOption.CREATE_NEW, StandardOpenOption.READ,
        StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)
      val channel = folder.newByteChannel(path.getFileName, options.asJava,
        PosixFilePermissions.asFileAttribute(OwnerOnly.asJava)).asInstanceOf[FileChannel]
      closedOnError(channel) { created =>
        group.map(named).foreach(share(path, folder, _))
        created
      }
    }

  private[supply] def closedOnError[C <: AutoCloseable, A](opened: C)(body: C => A): A =
    try body(opened)
    catch {
      case e: Throwable =>
        opened.close()
        throw e
    }

  private def share(
      path: Path, folder: SecureDirectoryStream[Path], group: GroupPrincipal): Unit = {
    val view = folder.getFileAttributeView(path.getFileName, classOf[PosixFileAttributeView],
      LinkOption.NOFOLLOW_LINKS)
    view.setGroup(group)
    view.setPermissions((OwnerOnly + GROUP_READ).asJava)
  }

  /** The permissions of a folder of this user. Throws a ConfigException if it is not safe to use. */
  private[supply] def permissionsOfOwn(path: Path): Set[PosixFilePermission] =
    Using.resource(openFolder(path.resolve("."), None))(checkOwn(path, _))

  private def checkOwn(
      path: Path, folder: SecureDirectoryStream[Path]): Set[PosixFilePermission] = {
    val found = folder.getFileAttributeView(classOf[PosixFileAttributeView]).readAttributes()
    checkFolder(path, found)
    if (found.owner != self)
      throw new ConfigException(
        s"the folder $path belongs to ${found.owner}, and this executor runs as $self: name a folder of " +
          "this user, or one that does not exist yet")
    found.permissions.asScala.toSet
  }

  private def openFolder(path: Path, group: Option[String]): SecureDirectoryStream[Path] =
    try {
      Files.newDirectoryStream(path.getParent) match {
        case secure: SecureDirectoryStream[Path @unchecked] => secure
        case other =>
          other.close()
          throw new ConfigException(
            s"$path: this Java cannot look up names in an open folder: run on Linux")
      }
    } catch {
      case e: AccessDeniedException => refuseAccess(path, group, e)
    }

  private def refuseAccess(path: Path, group: Option[String], cause: IOException): Nothing = {
    val owner =
      try s"belongs to ${Files.getOwner(path.getParent)}"
      catch { case _: IOException => "cannot be examined" }
    val what = s"$path: its folder $owner and is not open to this executor's user, $self"
    if (group.isDefined)
      throw new NotSharedYetException(s"$what: is this user in the group ${group.get}?")
    throw new ConfigException(s"$what: $twoWays", cause)
  }

  private def twoWays: String =
    "run both as one user, or name a group that both are in (group=, docs/SECURITY.md)"

  private[supply] def named(group: String): GroupPrincipal =
    try FileSystems.getDefault.getUserPrincipalLookupService.lookupPrincipalByGroupName(group)
    catch {
      case e: UserPrincipalNotFoundException =>
        throw new ConfigException(
          s"there is no group '$group' on this node: see group=", e)
    }

  private def check(path: Path, kind: Kind, group: Option[GroupPrincipal],
      opened: SecureDirectoryStream[Path], isOfFailure: Boolean): AnyRef = {
    def refuse(text: String): Nothing = throw new ConfigException(s"$path $text")
    val folder = opened.getFileAttributeView(classOf[PosixFileAttributeView]).readAttributes()
    val file = opened.getFileAttributeView(path.getFileName, classOf[PosixFileAttributeView],
      LinkOption.NOFOLLOW_LINKS)
      .readAttributes()
    if (file.isSymbolicLink) refuse("is a symbolic link, which is never followed: name its target")
    if (!kind.is(file)) refuse(s"is not a ${kind.text}: see mapped-files.conf and named-pipes.conf")
    if (isOfFailure && file.owner == self) return file.fileKey
    checkFolder(path.getParent, folder)
    if (folder.owner != file.owner)
      refuse(s"belongs to ${file.owner}, its folder to ${folder.owner}: a rank's file " +
        "lies in a folder of the same user")
    if (file.owner != self) checkShared(path, file, kind, group)
    if (has(file, usableByOthers) && has(folder, Set(OTHERS_EXECUTE))) {
      refuse(
        "can be used by everybody: a rank makes it for its own user alone; what else has made or changed it?")
    }
    file.fileKey
  }

  private def has(attributes: PosixFileAttributes, any: Set[PosixFilePermission]): Boolean =
    attributes.permissions.asScala.exists(any)

  private def checkFolder(path: Path, opened: PosixFileAttributes): Unit = {
    val now = Files.readAttributes(path, classOf[PosixFileAttributes], LinkOption.NOFOLLOW_LINKS)
    if (now.isSymbolicLink)
      throw new ConfigException(
        s"the folder $path is a symbolic link, which is never followed: name its target")
    if (now.fileKey != opened.fileKey)
      throw new NoSuchFileException(path.toString, null, "replaced while it was opened")
    // Java can read the sticky bit only by path. The check above has shown that the path leads to
    // the open folder.
    val mode = Files.getAttribute(path, "unix:mode", LinkOption.NOFOLLOW_LINKS).asInstanceOf[Int]
    if (has(opened, changeable) && (mode & sticky) == 0)
      throw new ConfigException(
        s"the folder $path can be written by other users than ${opened.owner}, who could put " +
          "files of theirs in the place of a rank's: chmod go-w it")
  }

  private def checkShared(
      path: Path, file: PosixFileAttributes, kind: Kind, group: Option[GroupPrincipal]): Unit = {
    val foreign = s"$path belongs to ${file.owner}, and this executor runs as $self"
    if (group.isEmpty) throw new ConfigException(s"$foreign: $twoWays")
    if (!group.contains(file.group) || !kind.usableByGroup.subsetOf(file.permissions.asScala.toSet))
      throw new NotSharedYetException(
        s"$foreign; the file is ${file.group}'s and not open to the group ${group.get}: " +
          "does the rank read the same mapped-files.conf?")
  }
}
