package supply.executor

import scala.util.Try

import org.apache.spark.supply.{SessionProbe, SparkInternals}

import supply.results.OpenResults

/**
 * In a task that opens results: removes them when the session ends. An executor that goes while the
 * session lives leaves the files, because another executor of its node reads them.
 */
private[supply] object ResultsTask {
  /** The driver's endpoint. */
  final val Endpoint = "supply-results"

  /** Asks the driver whether the session ends. */
  case object IsOver

  private lazy val hook: Unit = {
    val driver = new SessionProbe(Endpoint)
    SparkInternals.atShutdown { () =>
      // If that is not known, another executor of this node may still read them.
      val isOver = Try(driver.ask[Boolean](IsOver).getOrElse(true)).getOrElse(false)
      if (isOver) OpenResults.removeAll()
    }
    ()
  }

  /** Runs `body`, which opens results, in a task. */
  def apply[A](body: => A): A = {
    if (SessionProbe.isExecutor) hook
    body
  }
}
