package supply.datasource

import picocli.CommandLine.{Command, Mixin, Option => Opt}

import supply.core.{ConfigException, Deadline, NamedOptions}
import supply.sources.cache.LmdbCacheOptions

/** The options of `spark.read.format("lmdb")`. */
@Command(name = "lmdb", sortOptions = false)
private[supply] final class LmdbOptions {
  @Opt(
    names = Array("--path"),
    paramLabel = "PATH",
    description = Array(
      "LMDB of Caffe Datums: a directory with a data.mdb, or the data file itself; in HDFS, or where every node sees it."))
  var path: String = _

  @Opt(names = Array("--partitions"), paramLabel = "N",
    description = Array("Partitions of the DataFrame. Default: 4 for each core."))
  var partitions: Integer = _

  @Opt(
    names = Array("--timeout"),
    paramLabel = "SECONDS",
    defaultValue = "120",
    description = Array(
      "How long an executor waits while another one of its node fetches the LMDB and gets nothing. " +
        "Default: ${DEFAULT-VALUE}."))
  var timeout: Double = _

  @Opt(
    names = Array("--inPlace", "--inplace", "--in-place"),
    paramLabel = "true",
    description = Array(
      "The ranks read the data in the LMDB itself (--in-place). The DataFrame can only be supplied as it is read, or some of its columns."))
  var inPlace: Boolean = _

  @Opt(
    names = Array("--skipKeys", "--skipkeys", "--skip-keys"),
    paramLabel = "KEY,…",
    split = ",",
    description =
      Array("Keys to leave out, because their values are no Datums: for example num-samples."))
  var skipKeys: Array[String] = Array.empty

  def keysToSkip: Seq[String] = skipKeys.toSeq

  @Mixin
  val cache: LmdbCacheOptions = new LmdbCacheOptions
}

private[supply] object LmdbOptions {
  def parse(options: Map[String, String]): LmdbOptions = {
    val parsed = NamedOptions.parse(new LmdbOptions, options)
    if (parsed.path == null)
      throw new ConfigException(
        """no path, or several: load one LMDB, spark.read.format("lmdb").load("…/train_lmdb"), and union() the frames of several""")
    if (parsed.partitions != null && parsed.partitions < 1)
      throw new ConfigException(s"partitions is ${parsed.partitions}: it must be at least 1")
    Deadline.require("timeout", parsed.timeout)
    parsed
  }
}
