package supply.tools

import java.io.File
import java.util.{Collections, Map => JavaMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkConf
import picocli.CommandLine
import picocli.CommandLine.{Mixin, Option => Opt, ParameterException}

import supply.lmdb.SupplierOptions
import supply.core.{NamedOptions, SupplyException, UsageError}
import supply.plan.Hostfile
import supply.run.ContainerMemory

/**
 * Run by launch/submit-supplier before it submits: prints the settings that follow from config
 * files and cluster, one KEY=VALUE a line. Here the user reads what is wrong, not in a log on the
 * cluster.
 */
private[supply] object Submission {
  /** The arguments: spark.executor.memory, SPARK_HOME, Spark's --conf options, the Supplier's. */
  def main(arguments: Array[String]): Unit = {
    val executorMemory = arguments(0)
    val sparkHome = arguments(1)
    val parsed = new SubmissionOptions
    val status =
      try {
        NamedOptions.read(new CommandLine(parsed), arguments.drop(2).toSeq).foreach(throw _)
        val run = parsed.supplier.run
        val overhead = ContainerMemory.overheadMiB(
          parsed.conf(executorMemory), run.configFiles,
          Hostfile(Option(run.pairs.hosts), run.ranks))
        println(s"spark.executor.memoryOverhead=${overhead}m")
        // Replaces the `kill %p` that Spark adds on YARN: docs/design/decisions.md says why.
        println("spark.executor.defaultJavaOptions=-XX:OnOutOfMemoryError=true")
        val archive = JarsArchive.upload(new File(sparkHome, "jars"),
          line => System.err.println(s"submit-supplier: $line"))
        println(s"spark.yarn.archive=$archive")
        0
      } catch {
        case e: ParameterException =>
          System.err.println(s"submit-supplier: error: ${UsageError.text(e)}")
          2
        case e: SupplyException =>
          System.err.println(s"submit-supplier: error: ${e.getMessage}")
          1
      }
    sys.exit(status)
  }
}

/** The options of launch/submit-supplier: the Supplier's, and Spark's settings. */
private[supply] final class SubmissionOptions {
  @Opt(names = Array("--conf"), paramLabel = "KEY=VALUE")
  var settings: JavaMap[String, String] = Collections.emptyMap()

  @Mixin
  val supplier: SupplierOptions = new SupplierOptions

  /** Spark's settings as the driver will have them. */
  def conf(executorMemory: String): SparkConf =
    ContainerMemory.settings(settings.asScala.toMap, executorMemory)
}
