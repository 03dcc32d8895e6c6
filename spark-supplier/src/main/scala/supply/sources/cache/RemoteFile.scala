package supply.sources.cache

import java.io.{FileNotFoundException, IOException, InputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.util.SerializableConfiguration

import supply.core.SourceException

/**
 * A file in HDFS, or in another file system that Hadoop knows, as it was when the run began.
 *
 * @param uri
 *   as Hadoop's Path writes and reads it: nothing in it is encoded, not even a space or a %
 * @param hadoop
 *   the settings of the file systems
 */
final case class RemoteFile(uri: String, length: Long, modified: Long)(
    hadoop: SerializableConfiguration) {

  /**
   * Names the file in this state: another content has another key, as far as length and time tell.
   */
  def key: String =
    MessageDigest.getInstance("SHA-256").digest(s"$uri\n$length\n$modified".getBytes(UTF_8)).take(
      16).map(b => f"${b & 0xff}%02x").mkString

  def describe: String =
    s"$uri\n$length bytes, modified ${java.time.Instant.ofEpochMilli(modified)}\n"

  def open(): InputStream = {
    val path = new Path(uri)
    path.getFileSystem(hadoop.value).open(path)
  }

  /** The copy is only what it says if the file is still the same. */
  def requireUnchanged(): Unit =
    if (RemoteFile.find(uri, hadoop) != this)
      throw new SourceException(s"$uri has changed while it was fetched: start the run again")
}

object RemoteFile {

  /** Whether a name has the form that keys have. */
  private[cache] def isKey(name: String): Boolean = name.matches("[0-9a-f]{32}")

  /** Whether a name is a URI of a file system that can not be used in place. */
  def isRemote(name: String): Boolean = scheme(name).exists(_ != "file")

  /** The path that a name without a scheme, or with file:, stands for. */
  def localPath(name: String): String =
    if (scheme(name).contains("file")) new Path(name).toUri.getPath else name

  private def scheme(name: String): Option[String] =
    "^([a-zA-Z][a-zA-Z0-9+.-]*):".r.findFirstMatchIn(name).map(_.group(1).toLowerCase)

  /**
   * The file of that name, which is taken as it is written, or `inside` the directory of that name.
   */
  def find(
      name: String, hadoop: SerializableConfiguration, inside: Option[String] = None): RemoteFile =
    try {
      val path = new Path(name)
      val fs = path.getFileSystem(hadoop.value)
      def status(at: Path): Option[FileStatus] =
        try Some(fs.getFileStatus(at))
        catch { case _: FileNotFoundException => None }
      val root = status(path).getOrElse(
        throw new SourceException(s"there is no LMDB at $name: no such file or directory (--lmdb)"))
      val found = inside.filter(_ => root.isDirectory) match {
        case None => root
        case Some(file) => status(new Path(path, file)).getOrElse(
            throw new SourceException(s"$name holds no LMDB: it has no $file (--lmdb)"))
      }
      RemoteFile(found.getPath.toString, found.getLen, found.getModificationTime)(hadoop)
    } catch {
      case e @ (_: IOException | _: IllegalArgumentException) =>
        throw new SourceException(s"can not look at $name (--lmdb): $e", e)
    }
}
