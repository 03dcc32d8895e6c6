package supply.core

import java.util.Properties

import org.apache.spark.SPARK_VERSION

/**
 * The Spark that this jar is built for. Under another Scala version the jar does not link, so the
 * program checks this before anything else. Nothing here may differ between Scala versions: no
 * collections, no string interpolation.
 */
private[supply] object BuiltFor {
  private val properties = new Properties
  private val stream = getClass.getResourceAsStream("/supply/built-for.properties")
  try properties.load(stream)
  finally stream.close()

  /** Of this project, for example 0.2.0. */
  val version: String = properties.getProperty("version")

  /** For example, 4.1. */
  val sparkLine: String = properties.getProperty("spark")

  private val scalaLine = properties.getProperty("scala")
  private val runningScala = firstTwo(scala.util.Properties.versionNumberString)

  /** The minor versions of Spark that this jar is tested with, the oldest first. */
  val tested: Array[String] = properties.getProperty("tested").split(" ")

  /** Why this jar cannot run here; null if it can. It runs with each later minor version of its Spark. */
  val mismatch: String =
    if (runningScala.equals(scalaLine) && major(SPARK_VERSION).equals(major(sparkLine)) &&
      minor(SPARK_VERSION) >= minor(tested(0))) null
    else {
      "this jar is built for Spark " + sparkLine + " with Scala " + scalaLine + ", and this is Spark " + SPARK_VERSION +
        " with Scala " + runningScala
    }

  /** Whether this jar is tested with this Spark. */
  def isTested: Boolean = contains(tested, firstTwo(SPARK_VERSION))

  /** What to do with another Spark. */
  val fix: String = {
    val other = lineOf(major(SPARK_VERSION))
    val build = if (other == null || other.equals(sparkLine)) ""
    else "build the jar for this Spark (make build SPARK=" + other + "), or "
    build + "set SPARK_HOME to a Spark " + properties.getProperty("tested").replace(" ", " or ") +
      " with Scala " + scalaLine
  }

  /** The line that has a jar for this major version of Spark, or null. */
  private def lineOf(majorVersion: String): String = {
    val lines = properties.getProperty("lines").split(" ")
    var i = 0
    while (i < lines.length && !major(lines(i)).equals(majorVersion)) i += 1
    if (i < lines.length) lines(i) else null
  }

  private def contains(versions: Array[String], version: String): Boolean = {
    var i = 0
    while (i < versions.length && !versions(i).equals(version)) i += 1
    i < versions.length
  }

  private def firstTwo(version: String): String = {
    val end = version.indexOf('.', version.indexOf('.') + 1)
    if (end < 0) version else version.substring(0, end)
  }

  private def major(version: String): String = version.substring(0, version.indexOf('.'))

  private def minor(version: String): Int =
    Integer.parseInt(firstTwo(version).substring(version.indexOf('.') + 1))
}
