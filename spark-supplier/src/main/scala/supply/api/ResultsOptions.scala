package supply.api

import org.apache.spark.SparkContext
import picocli.CommandLine.{Command, Mixin, Option => Opt}

import supply.core.{ConfigException, NamedOptions}
import supply.pair.ConfigFiles
import supply.plan.{Hostfile, RankPlacement, Sharing}
import supply.results.{LoadResults, LoadedResults, ResultPath, ResultsSettings}
import supply.run.{GivenTexts, Hubs, PairOptions, ServedRanks}
import supply.task.Served

/** The options of `spark.read.format("supply")`. */
@Command(name = "results", sortOptions = false)
private[supply] final class ResultsOptions {
  @Opt(names = Array("--results"), paramLabel = "NAME",
    description = Array("Name of the result that the ranks have opened."))
  var results: String = _

  @Opt(names = Array("--ranks"), paramLabel = "N", defaultValue = "1",
    description = Array("Number of MPI ranks on all nodes together. Default: ${DEFAULT-VALUE}."))
  var ranks: Int = _

  @Mixin
  var pairs: PairOptions = _

  @Opt(names = Array("--share"), paramLabel = "N", defaultValue = "1",
    description = Array(
      "As the run had it: only one rank of each group is read. Default: ${DEFAULT-VALUE}, each rank."))
  var share: String = "1"

  @Opt(names = Array("--reader"), paramLabel = "I", defaultValue = "0", hidden = true,
    description = Array("For several functions: which rank of each group is read, from 0 on."))
  var reader: Int = 0

  @Opt(
    names = Array("--results-folder"),
    paramLabel = "FOLDER",
    description = Array(
      "Folder of the results on each node, if the ranks have one (SUPPLY_RESULTS_FOLDER). " +
        "Default: the folder of the rank's mapped file."))
  var resultsFolder: String = _

  @Opt(
    names = Array("--timeout"),
    paramLabel = "SECONDS",
    defaultValue = "120",
    description = Array(
      "How long load() waits until all ranks have sealed the result. Default: ${DEFAULT-VALUE}."))
  var timeout: Double = _

  @Opt(names = Array("--hub-run"), paramLabel = "NAME",
    description = Array("The run at the hub to which this read belongs."))
  var hubRun: String = _

  @Opt(names = Array("--release-unreferenced"),
    description = Array(
      "Removes the result on all nodes when no DataFrame refers to it any more. Without it, it stays until the session ends."))
  var releaseUnreferenced: Boolean = _

  @Opt(names = Array("--serve"), paramLabel = "RUN[/DATA]",
    description = Array(
      "The result of ranks that have connected to this run of the session. They need no --ranks and no files."))
  var serve: String = _

  private var texts = Map.empty[String, String]

  /** Loads within the run at the hub, if there is one. */
  def load(sc: SparkContext): LoadedResults = {
    def loaded = LoadResults(sc, if (serve == null) ofFiles else ofServed(sc))
    val found = if (hubRun == null) loaded else Hubs.notingFailure(hubRun, results)(loaded)
    if (releaseUnreferenced) found.releaseUnreferenced()
    found
  }

  private def ofServed(sc: SparkContext): ResultsSettings = {
    ResultPath.requireName(results)
    val served = Served.read(serve).getOrElse(
      throw new ConfigException(s"serve is '$serve': it must be RUN or RUN/DATA"))
    val hosts = ServedRanks.of(sc, served).hostsOf(results, timeout).zipWithIndex.map {
      case (host, rank) => RankPlacement(Some(host), rank)
    }
    ResultsSettings(results, hosts.size, served.configFiles(hosts.size), None, Some(served.folder),
      timeout, places = Some(Hostfile(hosts)))
  }

  private def ofFiles: ResultsSettings = ResultsSettings(
    name = results,
    ranks = ranks,
    configFiles = ConfigFiles(pairs.mappedFiles, pairs.namedPipes, texts),
    hosts = Option(pairs.hosts),
    folder = Option(resultsFolder),
    timeout = timeout,
    share = Sharing.named(share),
    reader = reader)
}

private[supply] object ResultsOptions {
  /** The option that tells a read from a write. */
  final val Name = "results"

  def parse(options: Map[String, String]): ResultsOptions = {
    if (options.contains("path")) throw new ConfigException(
      "load() takes no path: the ranks are named by mapped-files and named-pipes")
    if (!options.contains(Name)) throw new ConfigException(
      """no result: spark.read.format("supply").option("results", NAME)… reads what ranks have written as NAME""")
    val files = GivenTexts.of(options)
    files.twice.foreach(throw _)
    val read = NamedOptions.parse(new ResultsOptions, files.options)
    read.texts = files.texts
    read
  }
}
