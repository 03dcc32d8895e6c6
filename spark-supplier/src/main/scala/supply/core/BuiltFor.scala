package supply.core

import java.util.Properties

import org.apache.spark.SPARK_VERSION

/**
 * The Spark that this jar is built for. Under another Scala version the jar does not link, so the
 * program checks this before anything else. Nothing here may differ between Scala versions: no
 * collections, no string interpolation.
 */
object BuiltFor {
  private val properties = new Properties
  private val stream = getClass.getResourceAsStream("/supply/built-for.properties")
  try properties.load(stream)
  finally stream.close()

  /** For example, 4.1. */
  val sparkLine: String = properties.getProperty("spark")

  private val scalaLine = properties.getProperty("scala")
  private val runningScala = firstTwo(scala.util.Properties.versionNumberString)

  /** Why this jar cannot run here; null if it can. It runs with each minor version of its Spark. */
  val mismatch: String =
    if (runningScala.equals(scalaLine) && major(SPARK_VERSION).equals(major(sparkLine))) null
    else {
      "this jar is built for Spark " + sparkLine + " with Scala " + scalaLine + ", and this is Spark " + SPARK_VERSION +
        " with Scala " + runningScala
    }

  /** What to do with another Spark. */
  val fix: String = "build the jar for this Spark (make build SPARK=" + firstTwo(
    SPARK_VERSION) + "), or set SPARK_HOME to a Spark " + sparkLine

  private def firstTwo(version: String): String = {
    val end = version.indexOf('.', version.indexOf('.') + 1)
    if (end < 0) version else version.substring(0, end)
  }

  private def major(version: String): String = version.substring(0, version.indexOf('.'))
}
