package supply

import picocli.CommandLine.{Command, Option => Opt}

/** The Supplier's options, declared once: --help and docs/OPTIONS.md are made from this. */
@Command(
  name = "supplier",
  sortOptions = false,
  usageHelpAutoWidth = true,
  description = Array("Supplies the elements of a data set to MPI ranks, through memory-mapped files, epoch after epoch."),
  exitCodeListHeading = "%nExit status:%n",
  exitCodeList = Array("0:every rank has received all its data", "1:the run failed; the last line on stderr says why",
    "2:the options are wrong"))
final class SupplierOptions {

  @Opt(names = Array("--lmdb"), paramLabel = "PATH", required = true,
    description = Array("LMDB of Caffe Datums: a directory with a data.mdb, or the data file itself. A path is used where it is, " +
      "and every node sees it; an LMDB in HDFS (hdfs://...) is copied to each node that has ranks. Opened read-only, without a " +
      "lock; must not be written to meanwhile."))
  var lmdb: String = _

  @Opt(names = Array("--lmdb-cache"), paramLabel = "FOLDER", defaultValue = "/var/tmp/supply-cache-${sys:user.name}",
    description = Array("Where each node keeps its copies of LMDBs in HDFS, for its executors and for later runs. " +
      "Default: /var/tmp/supply-cache-USER."))
  var lmdbCache: String = _

  @Opt(names = Array("--lmdb-cache-size"), paramLabel = "SIZE",
    description = Array("What these copies may take on a node, as 500GiB: the one that was not used for longest makes room for a new " +
      "one. Default: half of the file system."))
  var lmdbCacheSize: String = _

  @Opt(names = Array("--partitions"), paramLabel = "N",
    description = Array("Partitions of the data set: the unit that is given to ranks, shuffled and cached. May be more than there " +
      "are elements. Default: 4 for each rank."))
  var partitions: Integer = _

  @Opt(names = Array("--ranks"), paramLabel = "N", defaultValue = "1",
    description = Array("MPI ranks to supply, on all nodes together. Spark needs as many task slots. Default: ${DEFAULT-VALUE}."))
  var ranks: Int = _

  @Opt(names = Array("--epochs"), paramLabel = "E", defaultValue = "1",
    description = Array("Passes over the data set. Default: ${DEFAULT-VALUE}."))
  var epochs: Int = _

  @Opt(names = Array("--seed"), paramLabel = "S", defaultValue = "0",
    description = Array("Seed of the order in which each rank gets its partitions, a new order in each epoch. The same seed gives " +
      "the same elements in the same order on each rank. Default: ${DEFAULT-VALUE}."))
  var seed: Long = _

  @Opt(names = Array("--storage-level"), paramLabel = "LEVEL", defaultValue = "none",
    description = Array("Spark's storage level for the elements: MEMORY_ONLY, MEMORY_AND_DISK, DISK_ONLY, ... or none: nothing is " +
      "persisted, elements go from LMDB's pages straight into the mapped file. Default: ${DEFAULT-VALUE}."))
  var storageLevel: String = _

  @Opt(names = Array("--block-elements"), paramLabel = "N",
    description = Array("Elements after which a block is closed, so that a block is a mini-batch. It is closed earlier when it is " +
      "full, and at the end of a partition. Default: when it is full."))
  var blockElements: Integer = _

  @Opt(names = Array("--resident"),
    description = Array("Lets the blocks of the first epoch stay in the mapped file: later epochs notify them again, in their own " +
      "order, and copy nothing. All elements of a rank must fit its ring, as ring= and block= of mapped-files.conf set it; where " +
      "they do not, the run ends with the sizes that they need."))
  var resident: Boolean = _

  @Opt(names = Array("--mapped-files"), paramLabel = "FILE", required = true,
    description = Array("mapped-files.conf: line i names the mapped file of local rank i. The ranks take the same file."))
  var mappedFiles: String = _

  @Opt(names = Array("--named-pipes"), paramLabel = "FILE", required = true,
    description = Array("named-pipes.conf: line i names the request pipe and the notification pipe of local rank i. The ranks " +
      "take the same file."))
  var namedPipes: String = _

  @Opt(names = Array("--hosts"), paramLabel = "FILE",
    description = Array("Host file in Open MPI's format (host slots=n), the one that mpirun gets: says on which node each rank is. " +
      "Default: all ranks on this node."))
  var hosts: String = _

  @Opt(names = Array("--timeout"), paramLabel = "SECONDS", defaultValue = "120",
    description = Array("Limit of each wait: for executors, for a rank to open its pair, for a rank to release a block. " +
      "Default: ${DEFAULT-VALUE}."))
  var timeout: Double = _

  @Opt(names = Array("--wait-for-rank"),
    description = Array("When a rank ends before it has all its data, wait for it to come back, at most the time limit, instead of " +
      "ending the run. It gets what follows the position that it brings (supply_position_save in supply.h), or everything."))
  var waitForRank: Boolean = _

  @Opt(names = Array("--help"), usageHelp = true, description = Array("Prints this and ends."))
  var help: Boolean = _
}
