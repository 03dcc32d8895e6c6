package supply.run

import picocli.CommandLine.Model.OptionSpec
import picocli.CommandLine.{Command, Mixin, Option => Opt, ParameterException}

import supply.core.{ConfigException, NamedOptions, Size}
import supply.pair.ConfigFiles
import supply.plan.{Sharing, Shuffle, Uneven}
import supply.task.SupplySettings

/** The options of any run: on the Supplier's command line, and of a DataFrame's writer. */
@Command(name = "supply", sortOptions = false)
private[supply] final class RunOptions {
  @Opt(
    names = Array("--ranks"),
    paramLabel = "N",
    defaultValue = "1",
    description = Array(
      "Number of MPI ranks on all nodes together. Spark needs a task slot for each. Default: ${DEFAULT-VALUE}."))
  var ranks: Int = _

  @Opt(names = Array("--epochs"), paramLabel = "E", defaultValue = "1",
    description = Array("Passes over the data set. Default: ${DEFAULT-VALUE}."))
  var epochs: Int = _

  @Opt(
    names = Array("--seed"),
    paramLabel = "S",
    defaultValue = "0",
    description = Array(
      "Seed of the order in which each rank gets its elements. With the same seed each rank gets the same elements " +
        "in the same order. Default: ${DEFAULT-VALUE}."))
  var seed: Long = _

  @Opt(
    names = Array("--shuffle"),
    paramLabel = "HOW",
    defaultValue = "partitions",
    description = Array(
      "none: a rank gets its partitions, and their elements, in the order of the source. partitions: it gets its " +
        "partitions in a new order in each epoch. rows: the elements of each partition also come in a new order, " +
        "within --shuffle-buffer. all: as partitions, and then the ranks exchange elements, so that each rank gets elements of all " +
        "partitions. Their program must be written for it (docs/EXCHANGE.md). Default: ${DEFAULT-VALUE}."))
  var shuffle: String = _

  @Opt(
    names = Array("--shuffle-buffer"),
    paramLabel = "N",
    description = Array(
      "With --shuffle rows, the number of elements from which the next one is drawn. Each task keeps them on its " +
        "executor's heap: N times the bytes of an element. A buffer as large as a partition shuffles it fully. Default: 1024."))
  var shuffleBuffer: Integer = _

  @Opt(
    names = Array("--exchange-fraction"),
    paramLabel = "F",
    description = Array(
      "With --shuffle all, the part of its elements that each rank exchanges, above 0 and at most 1, in steps of 0.000001. The " +
        "rest stays with its rank. Default: 1."))
  var exchangeFraction: java.lang.Double = _

  @Opt(
    names = Array("--global-batch"),
    paramLabel = "N",
    hidden = true,
    description = Array(
      "For Supplier.run(order='global'): all ranks of a node read one ring with all elements in one order, and take their own " +
        "run of each N elements themselves. Not with --shuffle all, --uneven, --resident and --resident-folder."))
  var globalBatch: Integer = _

  @Opt(
    names = Array("--uneven"),
    paramLabel = "HOW",
    defaultValue = "keep",
    description = Array(
      "What to do if some ranks have more elements than others. keep: supply every element once in an epoch. drop: " +
        "every rank makes as many steps in an epoch as the rank with the fewest; the other elements are left out of that epoch. " +
        "pad: every rank makes as many steps as the rank with the most; some elements repeat. A step is a block of " +
        "--block-elements elements of one partition; without --block-elements it is one element. If the source does not know " +
        "the number of its elements, a pass over it counts them first. Default: ${DEFAULT-VALUE}."))
  var uneven: String = _

  @Opt(
    names = Array("--block-elements"),
    paramLabel = "N",
    description = Array(
      "Closes a block after N elements, so that a block is a mini-batch. A block is closed earlier when it is full, " +
        "and at the end of a partition. Default: when it is full. With --in-place the default is 4096."))
  var blockElements: Integer = _

  @Opt(
    names = Array("--resident"),
    description = Array(
      "Keeps the blocks of the first epoch in memory: in a file beside the mapped file of each rank. In later epochs the ranks " +
        "read the blocks there, in the order of that epoch, and nothing is copied. The file is removed at the end."))
  var resident: Boolean = _

  @Opt(
    names = Array("--resident-folder"),
    paramLabel = "DIR",
    description = Array(
      "As --resident, for more elements than fit into memory: the files are in DIR on each node. DIR is an absolute path on a local disk of each node. It is " +
        "made if it is missing. The files are removed at the end."))
  var residentFolder: String = _

  @Opt(
    names = Array("--resident-quota"),
    paramLabel = "SIZE",
    description = Array(
      "The most that this run may write into --resident-folder on each node, as 500GiB. Each rank of a node may write an " +
        "equal part. Default: as much as there is space."))
  var residentQuota: String = _

  @Opt(
    names = Array("--keep"),
    paramLabel = "NAME",
    arity = "0..1",
    fallbackValue = "",
    description = Array(
      "The file in --resident-folder stays after the run. A later run with the same source, --partitions, --ranks, --seed, " +
        "--shuffle, --exchange-fraction, --block-elements and NAME uses it from its first epoch on, and does not read the source. An LMDB is known by its path, size and " +
        "time of modification. A DataFrame has no such mark: its NAME must say which data it is. " +
        "Before its first block, a run reads the header of each block of the file, so set block= to at least 1 MiB " +
        "in mapped-files.conf. Remove the files (*.kept) yourself."))
  var keep: String = _

  @Mixin
  var pairs: PairOptions = _

  @Opt(
    names = Array("--timeout"),
    paramLabel = "SECONDS",
    defaultValue = "120",
    description = Array(
      "Timeout of each wait: for executors, and without --rank-timeout for a rank to open its pair or to release a block. " +
        "Default: ${DEFAULT-VALUE}."))
  var timeout: Double = _

  @Opt(
    names = Array("--rank-timeout"),
    paramLabel = "SECONDS",
    description = Array(
      "Another timeout for the waits for a rank: to open its pair, to release a block. Set it higher if ranks evaluate or save " +
        "between two batches. Default: --timeout."))
  var rankTimeout: java.lang.Double = _

  @Opt(
    names = Array("--share"),
    paramLabel = "N",
    defaultValue = "1",
    description = Array(
      "Each N neighbouring ranks of a node read one ring: all of them get the same blocks. 'node': all ranks of a node. " +
        "The ranks need the same value in SUPPLY_SHARE. Default: ${DEFAULT-VALUE}, each rank has a ring of its own."))
  var share: String = "1"

  @Opt(
    names = Array("--wait-for-rank"),
    description = Array(
      "If a rank ends before it has received all its data, waits for it to come back, at most --rank-timeout, instead of " +
        "failing the run. The rank then gets the data after the position that it brings (supply_position_save in supply.h), or all data. " +
        "Not with --shuffle all."))
  var waitForRank: Boolean = _

  @Opt(
    names = Array("--resume-positions"),
    paramLabel = "LIST",
    description = Array(
      "Resumes an earlier run, with any number of ranks (--ranks). LIST has what each rank of that run has saved " +
        "(supply_position_to_text in supply.h, state_dict() in Python), in rank order, separated by commas; no-position for a rank " +
        "that has saved nothing. The elements of the interrupted epoch that no rank has consumed come first, each once, then the later " +
        "epochs, up to --epochs of both runs together. The data, --partitions, --seed, --shuffle, --exchange-fraction and --uneven must be those of that run. " +
        "If that run resumed an earlier one itself, give its LIST, a slash, and the new one. The ranks bring no positions."))
  var resumePositions: String = _

  @Opt(
    names = Array("--serve"),
    paramLabel = "RUN[/DATA]",
    description = Array(
      "The ranks connect to this run, wherever they are, instead of --mapped-files and --named-pipes: RUN and DATA have 1 to 64 of the " +
        "characters A-Z a-z 0-9 _ -. Not with --hosts, --share, --resident, --resident-folder, --keep and values in place."))
  var serve: String = _

  @Opt(
    names = Array("--serve-secret"),
    paramLabel = "TEXT",
    description = Array(
      "With --serve, the text that ranks must have as SUPPLY_KEY; Spark's pages do not show an option of this name. Default: that " +
        "of the environment variable SUPPLY_KEY, else a random one, which is printed."))
  var serveSecret: String = _

  @Opt(
    names = Array("--reconnect-timeout"),
    paramLabel = "SECONDS",
    defaultValue = "30",
    description = Array(
      "With --serve, how long a task waits for a rank whose connection is lost. Default: ${DEFAULT-VALUE}."))
  var reconnectTimeout: Double = _

  /** As of SupplySettings. */
  private[supply] var isQuiet = false
  private[supply] var emptyError = Option.empty[String]

  private var files = GivenTexts(Map.empty, Map.empty, None)

  private var misread = Seq.empty[(ParameterException, ConfigException)]

  /** Notes options that could not be read, each with the error for the user. The others hold. */
  private[supply] def noteMisread(errors: Seq[(ParameterException, ConfigException)]): Unit =
    misread = errors

  private[supply] def isMisread: Boolean = misread.nonEmpty

  /**
   * What a failure needs to reach the ranks, also one of the other settings. Its ranks are 0 if their
   * number is not known. None: nothing names the files of the ranks.
   */
  private[supply] def ranksToNotify: Option[SupplySettings] =
    if (serve == null && (pairs.mappedFiles == null || pairs.namedPipes == null)) None
    else if (serve != null && known.served.isEmpty) None
    else if (misread.exists(error => isOfRanks(error._1))) Some(known.copy(ranks = 0))
    else Some(known)

  private def isOfRanks(error: ParameterException): Boolean = error.getArgSpec match {
    case option: OptionSpec => option.longestName == "--ranks"
    case _ => false
  }

  /** Of ranks that connect, with rings as large as usual. */
  private[supply] def configFiles: ConfigFiles = known.configFiles

  private def known: SupplySettings = SupplySettings(
    ranks = ranks,
    mappedFiles = pairs.mappedFiles,
    namedPipes = pairs.namedPipes,
    hosts = Option(pairs.hosts),
    timeout = timeout,
    rankTimeout = Option(rankTimeout).map(_.toDouble),
    waitForRank = waitForRank,
    resident = resident,
    residentFolder = Option(residentFolder),
    texts = files.texts,
    isQuiet = isQuiet,
    emptyError = emptyError,
    serve = Option(serve),
    serveSecret = Option(serveSecret),
    reconnectTimeout = reconnectTimeout)

  /** Throws a ConfigException if an option could not be read, or a value is wrong. */
  def settings: SupplySettings = {
    misread.headOption.map(_._2).orElse(files.twice).foreach(throw _)
    all
  }

  private def all: SupplySettings = known.copy(
    epochs = epochs,
    seed = seed,
    shuffle = Shuffle.named(shuffle, Option(shuffleBuffer).map(_.toInt),
      Option(exchangeFraction).map(_.toDouble)),
    uneven = Uneven.named(uneven),
    blockElements = Option(blockElements).map(_.toInt),
    residentQuota = Option(residentQuota).map(Size.bytes("--resident-quota", _)),
    keep = Option(keep),
    resumePositions = Option(resumePositions),
    globalBatch = Option(globalBatch).map(_.toInt),
    share = Sharing.named(share))
}

private[supply] object RunOptions {
  /**
   * Reads the options of a DataFrame's writer: names without dashes. What is wrong with them,
   * `settings` says, because the ranks must be notified of it.
   */
  def parse(options: Map[String, String]): RunOptions = {
    val run = new RunOptions
    read(run, options)(run)
    run
  }

  /** Reads them into `declared`, which has them, and perhaps others, in `run`. */
  def read(declared: AnyRef, options: Map[String, String])(run: => RunOptions): Unit = {
    val files = GivenTexts.of(options)
    val misread = NamedOptions.read(declared, files.options)
    run.files = files
    run.noteMisread(misread.map(e => e -> NamedOptions.wrong(e)))
  }
}

/**
 * Files that are given as texts, so that no node needs them: by the options hosts-text,
 * mapped-files-text and named-pipes-text, of a DataFrame's writer and of a read of results.
 *
 * @param texts by the options' names
 * @param options the others, and those that name the files: they name the texts
 * @param twice what is wrong if an option is there in both forms
 */
private[supply] final case class GivenTexts(texts: Map[String, String],
    options: Map[String, String], twice: Option[ConfigException])

private[supply] object GivenTexts {
  private val Names = Seq("hosts", "mapped-files", "named-pipes").map(name =>
    s"$name-text" -> name).toMap

  def of(options: Map[String, String]): GivenTexts = {
    val (texts, others) = options.partition { case (name, _) => Names.contains(name) }
    val twice = texts.keys.toSeq.sorted.find(name => others.contains(Names(name)))
    GivenTexts(texts.toMap, others ++ texts.keys.map(name => Names(name) -> name),
      twice.map(name =>
        new ConfigException(
          s"both ${Names(name)} and $name are given: give the path of a file, or its text")))
  }
}

/** The options that name the ranks' pairs, of each run and of each read of results. */
private[supply] final class PairOptions {
  @Opt(
    names = Array("--mapped-files"),
    paramLabel = "FILE",
    required = true,
    description = Array(
      "mapped-files.conf: line i names the mapped file of local rank i. The ranks use the same file."))
  var mappedFiles: String = _

  @Opt(
    names = Array("--named-pipes"),
    paramLabel = "FILE",
    required = true,
    description = Array(
      "named-pipes.conf: line i names the request pipe and the notification pipe of local rank i. The ranks use the " +
        "same file."))
  var namedPipes: String = _

  @Opt(
    names = Array("--hosts"),
    paramLabel = "FILE",
    description = Array(
      "The host file of mpirun, in Open MPI's format (host slots=n): it says on which node each rank is. " +
        "Default: all ranks are on this node."))
  var hosts: String = _
}
