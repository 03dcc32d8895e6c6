package supply.driver

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.SparkContext

/**
 * Runs whose ranks have all returned before the end of their data. Their tasks end without a
 * failure. `supply.spark` names its run in a local property of Spark, says when all ranks have
 * returned, and forgets it when no job of the run is left.
 */
private[supply] object UnwantedRuns {
  private val Property = "supply.run"

  private val names = ConcurrentHashMap.newKeySet[String]()

  def nameOf(sc: SparkContext): Option[String] = Option(sc.getLocalProperty(Property))

  def contains(name: String): Boolean = names.contains(name)

  def add(name: String): Unit = { names.add(name); () }

  def remove(name: String): Unit = { names.remove(name); () }
}
