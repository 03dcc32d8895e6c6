package supply.sources.cache

import picocli.CommandLine.{Option => Opt}

import supply.core.Size

/** The options for copies of LMDBs in HDFS, of the Supplier and of `spark.read.format("lmdb")`. */
final class LmdbCacheOptions {
  @Opt(
    names = Array("--lmdb-cache"),
    paramLabel = "FOLDER",
    defaultValue = "/var/tmp/supply-cache-${sys:user.name}",
    description = Array(
      "Where each node keeps its copies of LMDBs in HDFS, for its executors and for later runs. " +
        "Default: /var/tmp/supply-cache-USER."))
  var folder: String = _

  @Opt(
    names = Array("--lmdb-cache-size"),
    paramLabel = "SIZE",
    description = Array(
      "What these copies may take on a node, as 500GiB: the one that was not used for longest makes room for a new " +
        "one. Default: half of the file system."))
  var size: String = _

  def settings(timeout: Double): CacheSettings =
    CacheSettings(folder = folder, limit = Option(size).map(Size.bytes("--lmdb-cache-size", _)),
      timeout = timeout)
}
