package supply.source

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.attribute.FileTime
import java.nio.file.{Files, Paths}
import java.util.Arrays
import java.util.concurrent.TimeUnit.NANOSECONDS

import supply.core.SourceException
import supply.protocol.Layout

/**
 * A file of this node from which ranks read values in place. Device, inode, bytes and time of the
 * last change (nanoseconds since 1970) say which file it is, and that nobody has written to it.
 */
private[supply] final case class ForeignFile(
    path: String, device: Long, inode: Long, bytes: Long, modifiedNanos: Long)

private[supply] object ForeignFile {
  /** File systems on which another node may write unnoticed, or whose pages are copies. */
  private val remote = Set("nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "9p", "virtiofs", "afs",
    "ceph", "lustre", "gpfs", "beegfs", "pvfs2", "panfs", "wekafs", "gfs2", "ocfs2", "fuseblk")

  /** The kernel's clock of files may stand still for so long. */
  private val clockMillis = 20L

  private val InPlace = "be supplied in place (--in-place)"

  /**
   * The file as it is now. Throws a SourceException if ranks cannot read it there; `use`: what it
   * then cannot do.
   */
  def find(path: String, use: String = InPlace): ForeignFile = examine(path, use) {
    val real = Paths.get(path).toRealPath()
    val kind = Files.getFileStore(real).`type`()
    if (isRemote(kind))
      refuse(path, use, s"it is on a file system of type $kind, which is not local to this node")
    if (real.toString.getBytes(UTF_8).length >= Layout.ForeignFile.device)
      refuse(path, use, s"its path has more than ${Layout.ForeignFile.device - 1} bytes")
    val found = Files.readAttributes(real, "unix:dev,ino,size,lastModifiedTime")
    val modified = found.get("lastModifiedTime").asInstanceOf[FileTime]
    awaitNextTick(modified)
    ForeignFile(real.toString, found.get("dev").asInstanceOf[Long],
      found.get("ino").asInstanceOf[Long], found.get("size").asInstanceOf[Long],
      modified.to(NANOSECONDS))
  }

  /** The path without links. Throws a SourceException if it leads to no file. */
  def realPath(path: String): String =
    examine(path, InPlace)(Paths.get(path).toRealPath().toString)

  /** `kind`: a file system's type, as the kernel names it. */
  private[supply] def isRemote(kind: String): Boolean = remote(kind) || kind.startsWith("fuse.")

  private def examine[A](path: String, use: String)(body: => A): A =
    try body
    catch { case e: IOException => refuse(path, use, s"it cannot be examined: $e", e) }

  private def refuse(path: String, use: String, why: String, cause: Throwable = null): Nothing =
    throw new SourceException(s"$path cannot $use: $why. Supply it without that option", cause)

  /** After this, a change of the file changes its time, too. */
  private def awaitNextTick(modified: FileTime): Unit = {
    val age = System.currentTimeMillis() - modified.toMillis
    if (age >= 0 && age < clockMillis) Thread.sleep(clockMillis - age)
  }
}

/** Values of foreign files in numbered places, as views need them. For one thread. */
private[supply] final class ForeignValues(capacity: Int = 64) {
  /** Bytes of each value. */
  private[supply] var lengths = new Array[Int](capacity)

  /** Where it begins in its file. */
  private[supply] var offsets = new Array[Long](capacity)

  /** Its first four bytes, little-endian; zeros follow a shorter value. */
  private[supply] var starts = new Array[Int](capacity)

  /** The next eight bytes of a value that is so short that it stands in its view. */
  private[supply] var rests = new Array[Long](capacity)

  def set(place: Int, length: Int, offset: Long, start: Int, rest: Long): Unit = {
    if (place >= lengths.length) grow(2 * place)
    lengths(place) = length
    offsets(place) = offset
    starts(place) = start
    rests(place) = rest
  }

  /** Copies one place of other values. */
  def copy(place: Int, from: ForeignValues, at: Int): Unit =
    set(place, from.lengths(at), from.offsets(at), from.starts(at), from.rests(at))

  private def grow(size: Int): Unit = {
    lengths = Arrays.copyOf(lengths, size)
    offsets = Arrays.copyOf(offsets, size)
    starts = Arrays.copyOf(starts, size)
    rests = Arrays.copyOf(rests, size)
  }
}
