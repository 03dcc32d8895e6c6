package supply.driver

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.SparkContext

/**
 * Runs whose ranks have all returned before the end of their data. Their tasks end without a
 * failure. The caller names its run in a local property of Spark.
 */
private[supply] object UnwantedRuns {
  private val Property = "supply.run"

  private val names = ConcurrentHashMap.newKeySet[String]()

  def nameOf(sc: SparkContext): Option[String] = Option(sc.getLocalProperty(Property))

  def contains(name: String): Boolean = names.contains(name)

  def add(name: String): Unit = { names.add(name); () }

  def remove(name: String): Unit = { names.remove(name); () }
}
