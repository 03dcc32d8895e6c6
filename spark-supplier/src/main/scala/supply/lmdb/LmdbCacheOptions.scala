package supply.lmdb

import java.nio.file.{Files, Paths}

import picocli.CommandLine.{Option => Opt}

import supply.core.{ConfigException, Size}

/** The options for copies of LMDBs in HDFS, of the Supplier and of `spark.read.format("lmdb")`. */
private[supply] final class LmdbCacheOptions {
  @Opt(
    names = Array("--lmdb-cache"),
    paramLabel = "FOLDER",
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

  /** Throws a ConfigException if one is given for an LMDB that is not copied. */
  def refuseFor(path: String): Unit =
    Seq("--lmdb-cache" -> folder, "--lmdb-cache-size" -> size).find(_._2 != null).foreach {
      case (option, _) => throw new ConfigException(
          s"$option is for copies of an LMDB in HDFS, and $path is read where it lies: leave $option out, or name an hdfs:// path")
    }

  def settings(timeout: Double): CacheSettings =
    CacheSettings(
      folder = Option(folder).getOrElse(
        "/var/tmp/supply-cache-" + Files.getOwner(Paths.get("/proc/self"))),
      limit = Option(size).map(Size.bytes("--lmdb-cache-size", _)),
      timeout = timeout)
}
