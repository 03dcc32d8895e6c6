package supply.lmdb

import org.apache.spark.SparkContext
import org.apache.spark.util.SerializableConfiguration

import supply.core.SourceException
import supply.plan.Hostfile
import supply.run.{NodeJob, Progress}

/** Opens an LMDB for the tasks of a run: in place, or from copies if it is in HDFS. */
private[supply] object LmdbOpener {
  /**
   * `path` is one that every node sees, or a URI of a file system that Hadoop knows: then `hosts`
   * have their copies when this returns, and any other node fetches its copy when a task needs it. `skip`:
   * keys whose values are no Datums. `timeout`: how long an executor waits for the copy of another one.
   */
  def open(sc: SparkContext, path: String, partitions: Int, skip: Seq[String], hosts: => Hostfile,
      cache: LmdbCacheOptions, timeout: Double): LmdbRDD =
    if (RemoteFile.isRemote(path))
      fetch(sc, path, partitions, skip, hosts, cache.settings(timeout))
    else {
      cache.refuseFor(path)
      LmdbRDD.open(sc, RemoteFile.localPath(path), partitions, skip)
    }

  private def fetch(sc: SparkContext, uri: String, partitions: Int, skip: Seq[String],
      hosts: Hostfile, cache: CacheSettings): LmdbRDD = {
    val file = RemoteFile.find(uri, new SerializableConfiguration(sc.hadoopConfiguration),
      inside = Some("data.mdb"))
    val location = Remote(file, cache)
    val bytes = sc.longAccumulator("supply.fetched")
    val nodes = math.max(1, hosts.byHost.size)
    val progress = new Progress(sc, Seq(bytes))({ (totals, seconds) =>
      val most = nodes * file.length
      totals.head.toDouble / most ->
        f"fetching ${file.uri}%s onto $nodes%d nodes: ${totals.head / 1e9}%.3f GB of at most ${most / 1e9}%.3f GB, $seconds%.0f s"
    })
    // Each copy has the same content, so one node plans the partitions: the driver's node may have no
    // copy.
    val planned = progress.during(NodeJob.run(sc, hosts, s"fetching $uri", cache.timeout) {
      node =>
        val path = location.fetch(bytes.add(_))
        if (!node.isFirst) None
        else Some(LmdbPartition.plan(LmdbFile.open(path), partitions, skip))
    })
    planned.flatten.headOption match {
      case Some(plan) => new LmdbRDD(sc, location, plan)
      case None => throw new SourceException(s"no node has fetched $uri")
    }
  }
}
