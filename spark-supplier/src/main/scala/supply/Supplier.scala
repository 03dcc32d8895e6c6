package supply

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.storage.StorageLevel
import picocli.CommandLine
import picocli.CommandLine.ParameterException

import supply.config.ConfigFiles
import supply.plan.{Hosts, Plan}
import supply.source.{DatumSource, LmdbSource, Source}
import supply.source.lmdb.LmdbRDD
import supply.task.{FailureDelivery, PinnedJob, TaskSettings, TaskSlots}

/** The program that spark-submit runs: wires source, plan and pinned job together. */
object Supplier {

  /** A living rank answers at once; a rank that has been attached to once and does not answer is gone. */
  private val deliverySeconds = 2.0

  def main(arguments: Array[String]): Unit = {
    val commandLine = new CommandLine(new SupplierOptions)
    val status =
      try {
        commandLine.parseArgs(arguments: _*)
        if (commandLine.isUsageHelpRequested) {
          commandLine.usage(System.out)
          0
        } else supply(commandLine.getCommand[SupplierOptions])
      } catch {
        case e: ParameterException =>
          System.err.println(s"supplier: error: ${UsageError.text(e)}")
          2
      }
    if (status != 0) sys.exit(status)
  }

  private def supply(options: SupplierOptions): Int = {
    val conf = new SparkConf()
      .setIfMissing("spark.app.name", "Supplier")
      .setIfMissing("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    val sc = SparkContext.getOrCreate(conf)
    try {
      print(run(sc, options))
      0
    } catch {
      case e: Throwable =>
        System.err.println(s"supplier: error: ${describe(e)}")
        1
    } finally sc.stop()
  }

  /**
   * Supplies the ranks within a Spark application of one's own: the same arguments as on the command line.
   *
   * @return the table of the pairs, for people
   * @throws SupplyException if any rank did not receive all its data
   */
  def run(sc: SparkContext, arguments: Array[String]): String = {
    val options = new SupplierOptions
    try new CommandLine(options).parseArgs(arguments: _*)
    catch { case e: ParameterException => throw new ConfigException(UsageError.text(e), e) }
    run(sc, options)
  }

  private def run(sc: SparkContext, options: SupplierOptions): String = {
    val configFiles = ConfigFiles(options.mappedFiles, options.namedPipes)
    var hosts = Hosts.oneNode(math.max(1, options.ranks))
    var started = false
    try {
      check(options)
      if (options.hosts != null) hosts = Hosts.read(options.hosts, options.ranks)
      else configFiles.read(options.ranks)
      TaskSlots.require(sc, options.ranks, options.timeout)
      val (source, entries) = open(sc, options)
      val plan = Plan(source.rdd.partitions.length, options.ranks, options.epochs, options.seed)
      val settings = TaskSettings(configFiles, hosts, source.schema, source.mainColumn,
        if (options.blockElements == null) Int.MaxValue else options.blockElements, options.timeout)
      val job = new PinnedJob(sc, source, plan, settings)
      val progress = new Progress(sc, job, entries * options.epochs)
      started = true
      try Report.table(job.run())
      finally {
        progress.close()
        source.rdd.unpersist(blocking = false)
      }
    } catch {
      case e: Throwable =>
        val cause = PinnedJob.causeOf(e)
        if (!sc.isStopped) {
          FailureDelivery.deliver(sc, configFiles, hosts, describe(cause), if (started) deliverySeconds else options.timeout)
        }
        throw cause
    }
  }

  private def check(options: SupplierOptions): Unit = {
    def atLeastOne(name: String, value: Integer): Unit =
      if (value != null && value < 1) throw new ConfigException(s"$name is $value: it must be at least 1")
    atLeastOne("--ranks", options.ranks)
    atLeastOne("--epochs", options.epochs)
    atLeastOne("--partitions", options.partitions)
    atLeastOne("--block-elements", options.blockElements)
    if (!(options.timeout > 0)) throw new ConfigException(s"--timeout is ${options.timeout}: it must be above 0 seconds")
  }

  /** The source and its number of elements. */
  private def open(sc: SparkContext, options: SupplierOptions): (Source, Long) = {
    val partitions: Int = if (options.partitions == null) 4 * options.ranks else options.partitions
    val lmdb = LmdbRDD.open(sc, options.lmdb, partitions)
    val level = storageLevel(options.storageLevel)
    val source = if (level == StorageLevel.NONE) new LmdbSource(lmdb) else new DatumSource(lmdb.persist(level))
    (source, lmdb.entries)
  }

  private def storageLevel(name: String): StorageLevel =
    try StorageLevel.fromString(name.toUpperCase(java.util.Locale.ROOT))
    catch {
      case e: IllegalArgumentException =>
        throw new ConfigException(s"--storage-level '$name' is none of Spark's: none, MEMORY_ONLY, MEMORY_ONLY_SER, " +
          "MEMORY_AND_DISK, MEMORY_AND_DISK_SER, DISK_ONLY, OFF_HEAP, or one of them with _2 for two replicas", e)
    }

  /** One line: a failure of our own by its text, any other by its class, too. */
  private def describe(e: Throwable): String = e match {
    case known: SupplyException => known.getMessage
    case other => other.toString.linesIterator.nextOption().getOrElse("")
  }
}
