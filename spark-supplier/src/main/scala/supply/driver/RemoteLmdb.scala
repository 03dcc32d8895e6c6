package supply.driver

import org.apache.spark.SparkContext

import supply.core.SourceException
import supply.plan.Hostfile
import supply.sources.cache.{CacheSettings, RemoteFile}
import supply.sources.lmdb.{LmdbFile, LmdbPartition, LmdbRDD, Remote}

/**
 * An LMDB in HDFS: a copy of it for each node that reads it, and nowhere else; the driver's node
 * may have none.
 */
object RemoteLmdb {

  /**
   * @param hosts
   *   the nodes that have their copies when this returns; any other gets its own when a task of it
   *   first needs one
   */
  def open(sc: SparkContext, uri: String, partitions: Int, hosts: Hostfile, cache: CacheSettings)
      : LmdbRDD = {
    val file = RemoteFile.find(uri, inside = Some("data.mdb"))
    val location = Remote(file, cache)
    val bytes = sc.longAccumulator("supply.fetched")
    val nodes = NodeJob.nodes(hosts)
    val progress = new Progress(sc, Seq(bytes))({ (totals, seconds) =>
      val most = nodes * file.length
      totals.head.toDouble / most ->
        f"fetching ${file.uri}%s onto $nodes%d nodes: ${totals.head / 1e9}%.3f GB of at most ${most / 1e9}%.3f GB, $seconds%.0f s"
    })
    try {
      // Any of the copies says what is in it.
      val found = NodeJob.run(sc, hosts, s"fetching $uri") { first =>
        val path = location.fetch(bytes.add(_))
        if (!first) None
        else {
          val looked = LmdbFile.open(path)
          Some(looked.entries -> LmdbPartition.plan(looked, partitions))
        }
      }
      found.flatten.headOption match {
        case Some((entries, planned)) => new LmdbRDD(sc, location, entries, planned)
        case None => throw new SourceException(s"no node has fetched $uri")
      }
    } finally progress.close()
  }
}
