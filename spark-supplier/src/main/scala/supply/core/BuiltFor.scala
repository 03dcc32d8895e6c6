package supply.core

import java.util.Properties

import org.apache.spark.SPARK_VERSION

/**
 * The Spark that this jar is built for. A jar of another Scala can not be linked: this is looked at
 * before anything else, so nothing here may use what differs between Scalas, collections and string
 * interpolation least of all.
 */
object BuiltFor {

  private val properties = new Properties
  private val stream = getClass.getResourceAsStream("/supply/built-for.properties")
  try properties.load(stream)
  finally stream.close()

  /** As 4.1. */
  val sparkLine: String = properties.getProperty("spark")

  private val scalaLine = properties.getProperty("scala")
  private val runningScala = firstTwo(scala.util.Properties.versionNumberString)

  /**
   * Why nothing of this jar can run here; null where it can. Between the minor versions of one
   * Spark it is tried.
   */
  val mismatch: String =
    if (runningScala.equals(scalaLine) && major(SPARK_VERSION).equals(major(sparkLine))) null
    else {
      "this jar is built for Spark " + sparkLine + " with Scala " + scalaLine + ", and this is Spark " + SPARK_VERSION +
        " with Scala " + runningScala
    }

  /** What to do where it is another Spark. */
  val fix: String = "build the jar for this Spark (make build SPARK=" + firstTwo(
    SPARK_VERSION) + "), or set SPARK_HOME to a Spark " + sparkLine

  private def firstTwo(version: String): String = {
    val end = version.indexOf('.', version.indexOf('.') + 1)
    if (end < 0) version else version.substring(0, end)
  }

  private def major(version: String): String = version.substring(0, version.indexOf('.'))
}
