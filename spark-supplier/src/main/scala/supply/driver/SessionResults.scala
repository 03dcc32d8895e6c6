package supply.driver

import org.apache.spark.SparkContext
import org.apache.spark.supply.DriverEndpoint

import supply.core.DriverCalls
import supply.executor.ResultsTask
import supply.results.OpenResults

/**
 * The driver's part of the results of a session: its answers to [[ResultsTask]] and to tasks that
 * read results and land on a wrong node. In local mode it removes the results when the session ends.
 */
private[supply] final class SessionResults(sc: SparkContext) {
  private val misplaced = new MisplacedTasks(sc, s"${ResultsTask.Endpoint}-misplaced")
  new DriverEndpoint(sc, ResultsTask.Endpoint,
    ended = () => if (sc.isLocal) OpenResults.removeAll())({
    case ResultsTask.IsOver => sc.isStopped
  })
}

private[supply] object SessionResults {
  private var last = Option.empty[(SparkContext, SessionResults)]

  /** How tasks that read results say that they landed on a wrong node. */
  def misplaced(sc: SparkContext): DriverCalls = synchronized {
    if (!last.exists(_._1 eq sc)) last = Some(sc -> new SessionResults(sc))
    last.get._2.misplaced.calls
  }
}
