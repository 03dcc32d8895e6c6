package supply.sources.lmdb

import java.nio.file.{Files, Paths}
import java.util.concurrent.TimeUnit.NANOSECONDS

import supply.core.SourceException
import supply.data.ForeignFile
import supply.sources.cache.{CacheSettings, NodeCache, RemoteFile}

/** Where the tasks find an LMDB. */
sealed trait LmdbLocation extends Serializable {
  /** The data file on the node of this JVM. */
  def local(): String

  /** Which version of which file it is. For the driver. */
  def identity: String

  /** Size of the data file. For the driver. */
  def bytes: Long

  /** Whether ranks can read the data file in place, as far as this JVM can tell. */
  def canBeReadInPlace: Boolean
}

/** A path that every node sees. */
final case class SharedPath(path: String) extends LmdbLocation {
  override def local(): String = path

  override def identity: String =
    s"${file.toRealPath()}\n$bytes\n${Files.getLastModifiedTime(file).to(NANOSECONDS)}"

  override def bytes: Long = Files.size(file)

  private def file = Paths.get(path)

  override def canBeReadInPlace: Boolean =
    try {
      ForeignFile.find(path)
      true
    } catch { case _: SourceException => false }
}

/** A file in HDFS, with a copy on each node that reads it. */
final case class Remote(file: RemoteFile, cache: CacheSettings) extends LmdbLocation {
  override def local(): String = fetch(_ => ())

  override def identity: String = file.describe

  override def bytes: Long = file.length

  /** A cache is on a local disk. */
  override def canBeReadInPlace: Boolean = true

  def fetch(fetched: Long => Unit): String = NodeCache.get(file, cache, fetched).toString
}
