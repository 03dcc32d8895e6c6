package supply.sources.lmdb

import supply.sources.cache.{CacheSettings, NodeCache, RemoteFile}

/** Where the tasks find an LMDB. */
sealed trait LmdbLocation extends Serializable {
  /** The data file on the node of this JVM. */
  def local(): String
}

/** A path that every node sees. */
final case class InPlace(path: String) extends LmdbLocation {
  override def local(): String = path
}

/** A file in HDFS, with a copy on each node that reads it. */
final case class Remote(file: RemoteFile, cache: CacheSettings) extends LmdbLocation {
  override def local(): String = fetch(_ => ())

  def fetch(fetched: Long => Unit): String = NodeCache.get(file, cache, fetched).toString
}
