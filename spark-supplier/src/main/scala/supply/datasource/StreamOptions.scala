package supply.datasource

import supply.core.ConfigException
import supply.driver.RunOptions
import supply.executor.SupplySettings

/** The options of a stream: those of [[RunOptions]] that make sense without an end. */
private[datasource] object StreamOptions {
  /** Spark's own options, which it passes to every sink. */
  private val OfSpark = Set("checkpointlocation", "queryname")

  private val OfRuns = Map(
    "epochs" -> "each batch is an epoch, and comes once",
    "resident" -> "no batch comes again",
    "resident-folder" -> "no batch comes again",
    "resident-quota" -> "no batch comes again",
    "keep" -> "no batch comes again",
    "resume-positions" -> "a rank of a stream brings its own position",
    "seed" -> "the rows of a batch come in the order in which Spark has them",
    "shuffle" -> "the rows of a batch come in the order in which Spark has them",
    "shuffle-buffer" -> "the rows of a batch come in the order in which Spark has them",
    "exchange-fraction" -> "the ranks' program decides whether they exchange the rows of a batch",
    "uneven" -> "each row of a batch comes once")

  /** As [[RunOptions.parse]]. */
  def read(options: Map[String, String]): RunOptions =
    RunOptions.parse(options.filterNot { case (name, _) => OfSpark(name.toLowerCase) })

  /** Throws a ConfigException if `run`, which was read from `options`, is wrong for a stream. */
  def settings(options: Map[String, String], run: RunOptions): SupplySettings = {
    if (options.contains("path")) throw new ConfigException(
      "start() takes no path: the ranks are named by mapped-files and named-pipes")
    options.keys.find(OfRuns.contains).foreach { name =>
      throw new ConfigException(s"option '$name' is for runs, not for streams: ${OfRuns(name)}")
    }
    val settings = run.settings
    settings.check()
    settings
  }
}
