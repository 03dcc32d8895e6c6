package supply.task

import scala.collection.concurrent.TrieMap
import scala.util.Try
import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.supply.{DriverEndpoint, OfApplication, SessionProbe, SparkInternals}
import org.slf4j.LoggerFactory

/**
 * Removes what nodes have kept, when the session ends. An executor that goes while the session lives
 * leaves it, because another executor of its node may use it.
 */
private[supply] object SessionEnd {
  private val log = LoggerFactory.getLogger(getClass)
  private final val Endpoint = "supply-session"
  private case object IsOver
  private val removals = TrieMap.empty[String, () => Unit]

  private[supply] val current = new OfApplication(sc =>
    new DriverEndpoint(sc, Endpoint, () => removeAll())({ case IsOver => sc.isStopped }))

  /** On the driver, before tasks of this session call [[atEnd]]. */
  def watch(sc: SparkContext): Unit = { current(sc); () }

  /** In a task, or in the driver of local mode. Of each `name` one `remove` is done. */
  def atEnd(name: String)(remove: => Unit): Unit = {
    if (SessionProbe.isExecutor) hook
    removals(name) = () => remove
  }

  private lazy val hook: Unit = {
    val driver = new SessionProbe(Endpoint)
    SparkInternals.atShutdown { () =>
      // If that is not known, another executor of this node may still need it.
      val isOver = Try(driver.ask[Boolean](IsOver).getOrElse(true)).getOrElse(false)
      if (isOver) removeAll()
    }
    ()
  }

  private def removeAll(): Unit = removals.keys.foreach(name =>
    removals.remove(name).foreach(remove =>
      try remove()
      catch { case NonFatal(e) => log.warn(s"not all was removed of $name", e) }))
}
