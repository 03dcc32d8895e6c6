package supply.yarn

import java.util.{Collections, Map => JavaMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkConf
import picocli.CommandLine.{Mixin, Option => Opt}

import supply.driver.{ContainerMemory, SupplierOptions}

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
