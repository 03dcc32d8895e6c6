package supply.yarn

import java.util.{Collections, Map => JavaMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkConf
import org.apache.spark.supply.SparkInternals
import picocli.CommandLine.{Mixin, Option => Opt}

import supply.cli.SupplierOptions

/** The options of launch/submit-supplier: the Supplier's, and Spark's settings. */
private[supply] final class SubmissionOptions {

  @Opt(names = Array("--conf"), paramLabel = "KEY=VALUE")
  var settings: JavaMap[String, String] = Collections.emptyMap()

  @Mixin
  val supplier: SupplierOptions = new SupplierOptions

  /** Spark's settings as the driver will have them. */
  def conf(executorMemory: String): SparkConf = {
    val conf =
      new SparkConf(false).setAll(settings.asScala).set("spark.executor.memory", executorMemory)
    SparkInternals.setDefaults(conf)
    conf
  }
}
