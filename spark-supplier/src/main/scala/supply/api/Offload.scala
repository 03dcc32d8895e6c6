package supply.api

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{DataFrame, SparkSession}

import supply.linalg.{Matrix, MatrixRows, Ranks}
import supply.task.SupplySettings

/** `spark_supplier.offload.Ranks` of the Python package: [[Ranks]] with Java's collections. */
private[supply] object Offload {
  /** hosts: null if all ranks are on this node. */
  def ranks(spark: SparkSession, ranks: Int, mappedFiles: String, namedPipes: String, hosts: String,
      resultsFolder: String, timeout: Double): Ranks =
    new Ranks(spark,
      SupplySettings(ranks, mappedFiles, namedPipes, hosts = Option(hosts), timeout = timeout),
      resultsFolder)

  /** key: null if rows have none. */
  def matrix(ranks: Ranks, data: DataFrame, features: java.util.List[String], key: String,
      sparse: Boolean): Matrix =
    ranks.matrix(data, MatrixRows(features.asScala.toSeq, Option(key), sparse))

  def call(ranks: Ranks, library: String, routine: String, arguments: java.util.List[Any],
      parameters: java.util.Map[String, Any]): java.util.List[Matrix] =
    ranks.call(library, routine, arguments.asScala.toSeq, parameters.asScala.toMap).map(_._2).asJava
}
