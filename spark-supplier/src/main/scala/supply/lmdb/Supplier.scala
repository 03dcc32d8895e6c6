package supply.lmdb

import org.apache.spark.{SparkConf, SparkContext}
import picocli.CommandLine

import supply.core.{BuiltFor, ConfigException, FailureText, NamedOptions, RankEndedException, RankException, SupplyException, UsageError}
import supply.plan.Hostfile
import supply.run.{Report, RunPlan, SupplyJob, WaitingRanks}

/** The Supplier, a program for spark-submit: it supplies an LMDB. */
object Supplier {
  /** Exit status if a rank did not come, stalled, stopped or died: the cause is on its side. */
  private val RankFailed = 3

  /** Exit status if an option is unknown or missing, or is no number. */
  private val Misread = 2

  def main(arguments: Array[String]): Unit = {
    val status = if (BuiltFor.mismatch == null) start(arguments) else refuse()
    if (status != 0) sys.exit(status)
  }

  private def refuse(): Int = {
    System.err.println("supplier: error: " + BuiltFor.mismatch + ": " + BuiltFor.fix)
    1
  }

  private def start(arguments: Array[String]): Int = {
    val options = new SupplierOptions
    val commandLine = new CommandLine(options)
    val misread = read(commandLine, options, arguments)
    if (commandLine.isUsageHelpRequested) {
      commandLine.usage(System.out)
      0
    } else misread match {
      case Some(error) if options.run.ranksToNotify.isEmpty =>
        System.err.println(s"supplier: error: ${error.getMessage}")
        Misread
      // Spark also notifies the ranks of an option that is wrong.
      case _ => supply(options)
    }
  }

  /** Reads what can be read; returns the first mistake. */
  private def read(commandLine: CommandLine, options: SupplierOptions,
      arguments: Array[String]): Option[ConfigException] = {
    val misread = NamedOptions.read(commandLine, arguments.toSeq).map(e =>
      e -> new ConfigException(UsageError.text(e), e))
    options.run.noteMisread(misread)
    misread.headOption.map(_._2)
  }

  private def supply(options: SupplierOptions): Int = {
    val conf = new SparkConf()
      .setIfMissing("spark.app.name", "Supplier")
      .setIfMissing("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
      // The progress comes with the heartbeats. More of them would fail, and log errors, while a
      // slow machine starts Spark.
      .setIfMissing("spark.executor.heartbeatInterval", "2s")
    // A task can do nothing on another node than its rank's, so it waits there for a core for the
    // whole timeout.
    if (options.run.pairs.hosts != null)
      conf.setIfMissing("spark.locality.wait", s"${math.ceil(options.run.timeout).toLong}s")
    val sc = SparkContext.getOrCreate(conf)
    try {
      print(run(sc, options))
      0
    } catch {
      case e: Throwable =>
        // A SupplyException says everything in its message; any other error needs its stack trace.
        if (!e.isInstanceOf[SupplyException]) e.printStackTrace()
        System.err.println(s"supplier: error: ${FailureText.of(e)}")
        val status = if (options.run.isMisread) Misread else exitStatus(e)
        // In cluster mode YARN reports what main() throws, not its output or exit status.
        if (sc.deployMode == "cluster") throw new RunFailed(status, FailureText.of(e))
        status
    } finally {
      // The error is out. Ranks that come a moment later must have it, too.
      WaitingRanks.awaitNotices()
      sc.stop()
    }
  }

  private[lmdb] def exitStatus(failure: Throwable): Int = failure match {
    case _: RankException | _: RankEndedException => RankFailed
    case _ => 1
  }

  /** One line without a stack trace; launch/submit-supplier reads status and message from it. */
  private final class RunFailed(status: Int, message: String)
      extends RuntimeException(s"status $status: $message", null, false, false)

  /**
   * Supplies an LMDB from your own Spark application, with the arguments of the command line.
   * Returns the table of the pairs. Throws a SupplyException if any rank did not receive all its
   * data.
   */
  def run(sc: SparkContext, arguments: Array[String]): String = {
    val options = new SupplierOptions
    val misread = read(new CommandLine(options), options, arguments)
    // Else the run throws it, when the ranks know.
    misread.filter(_ => options.run.ranksToNotify.isEmpty).foreach(throw _)
    run(sc, options)
  }

  private def run(sc: SparkContext, options: SupplierOptions): String = {
    Report.table(SupplyJob.run(sc, options.run) { settings =>
      val partitions =
        Option(options.partitions).map(_.toInt).getOrElse(RunPlan.partitionsFor(settings))
      if (partitions < 1)
        throw new ConfigException(s"--partitions is $partitions: it must be at least 1")
      val lmdb = LmdbOpener.open(sc, options.lmdb, partitions, options.skipKeys.toSeq,
        Hostfile(Option(options.run.pairs.hosts), options.run.ranks),
        options.cache, options.run.timeout)
      if (!options.inPlace) lmdb.noteCopied("--in-place")
      new LmdbSource(lmdb, options.inPlace)
    })
  }
}
