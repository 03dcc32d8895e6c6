package supply.lmdb

import picocli.CommandLine.{Command, Mixin, Option => Opt}

import supply.run.RunOptions

/** The Supplier's options: --help and docs/OPTIONS.md are made from this and [[RunOptions]]. */
@Command(
  name = "supplier",
  sortOptions = false,
  usageHelpAutoWidth = true,
  description = Array(
    "Supplies the elements of a data set to MPI ranks through memory-mapped files, epoch after epoch."),
  exitCodeListHeading = "%nExit status:%n",
  exitCodeList = Array(
    "0:every rank has received all its data",
    "1:Spark or the source failed; the last line on stderr says why",
    "2:an option is unknown or missing, or is no number",
    "3:a rank did not come, stalled, stopped or died; the last line on stderr says which"))
private[supply] final class SupplierOptions {
  @Opt(
    names = Array("--lmdb"),
    paramLabel = "PATH",
    required = true,
    description = Array(
      "LMDB of Caffe Datums: a directory with a data.mdb, or the data file itself. Every node must see a path. " +
        "An LMDB in HDFS (hdfs://...) is copied to each node that has ranks. The LMDB is opened read-only and without " +
        "a lock: nobody may write to it during the run."))
  var lmdb: String = _

  @Opt(
    names = Array("--partitions"),
    paramLabel = "N",
    description = Array(
      "Partitions of the data set. Ranks get, shuffle and cache whole partitions. There may be more partitions " +
        "than elements. Default: 4 for each rank; with --resume-positions, for each rank of the first run."))
  var partitions: Integer = _

  @Opt(
    names = Array("--skip-keys"),
    paramLabel = "KEY,…",
    split = ",",
    description = Array(
      "Keys of the LMDB to leave out, because their values are no Datums: for example num-samples. Separate several by commas."))
  var skipKeys: Array[String] = Array.empty

  @Opt(
    names = Array("--in-place"),
    description = Array(
      "The ranks read the data of the elements in the LMDB itself: only keys, labels and shapes are copied. The file must be on a " +
        "local file system of the ranks' node, or in HDFS, and the ranks' user must be able to read it. During the run nobody may " +
        "write to it, or have it open for writing: a rank that notices it fails."))
  var inPlace: Boolean = _

  @Mixin
  val cache: LmdbCacheOptions = new LmdbCacheOptions

  @Mixin
  val run: RunOptions = new RunOptions

  @Opt(names = Array("--help"), usageHelp = true,
    description = Array("Prints this text and exits."))
  var help: Boolean = _
}
