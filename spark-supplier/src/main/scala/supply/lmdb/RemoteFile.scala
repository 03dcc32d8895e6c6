package supply.lmdb

import java.io.{FileNotFoundException, IOException, InputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.{HexFormat, Locale}

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.util.SerializableConfiguration

import supply.core.SourceException

/**
 * A version of a file in a file system that Hadoop knows. Nothing in `uri` is encoded, not even a
 * space or a %.
 */
private[supply] final case class RemoteFile(uri: String, length: Long, modified: Long)(
    hadoop: SerializableConfiguration) {
  /** Names this version of the file. Another length, or time of change, gives another key. */
  def key: String =
    HexFormat.of().formatHex(
      MessageDigest.getInstance("SHA-256").digest(s"$uri\n$length\n$modified".getBytes(UTF_8)),
      0, RemoteFile.KeyBytes)

  def describe: String =
    s"$uri\n$length bytes, modified ${java.time.Instant.ofEpochMilli(modified)}\n"

  def open(): InputStream = {
    val path = new Path(uri)
    path.getFileSystem(hadoop.value).open(path)
  }

  /** Throws if the file is no longer this version. */
  def requireUnchanged(): Unit =
    if (RemoteFile.find(uri, hadoop) != this)
      throw new SourceException(s"$uri has changed while it was fetched: start the run again")
}

private[supply] object RemoteFile {
  private final val KeyBytes = 16

  /** Whether a name has the form of a key. */
  private[lmdb] def isKey(name: String): Boolean = name.matches("[0-9a-f]{32}")

  /** Whether a name is a URI of a file system that cannot be used in place. */
  def isRemote(name: String): Boolean = scheme(name).exists(_ != "file")

  /** The local path of a name that has no scheme, or the scheme file:. */
  def localPath(name: String): String =
    if (scheme(name).contains("file")) new Path(name).toUri.getPath else name

  private def scheme(name: String): Option[String] =
    "^([a-zA-Z][a-zA-Z0-9+.-]*):".r.findFirstMatchIn(name).map(
      _.group(1).toLowerCase(Locale.ROOT))

  /** The file of that name, taken literally, or the file `inside` the directory of that name. */
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
        throw new SourceException(s"cannot read $name (--lmdb): $e", e)
    }
}
