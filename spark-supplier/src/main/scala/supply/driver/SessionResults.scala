package supply.driver

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.{SparkContext, TaskContext, TaskKilledException}
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd}
import org.apache.spark.supply.{DriverEndpoint, SessionProbe, SparkInternals}

import supply.core.{DriverCalls, MisplacedException}
import supply.executor.PinnedTask
import supply.results.OpenResults

/**
 * Removes the results that nobody has released when the session ends. An executor that goes while
 * the session lives leaves the files, because another executor of its node reads them.
 */
private[supply] object SessionResults {
  private final val Endpoint = "supply-results"

  /** Whether the session ends. */
  private case object IsOver

  /** Whether a task of this partition of a stage may land on a wrong node once more. */
  private final case class MayMove(stage: Int, partition: Int)

  private val misplacedMillis = 1000L

  private var session: SparkContext = _
  private var endpoint: DriverEndpoint = _
  private val moves = mutable.Map.empty[MayMove, Int]
  private lazy val hook: Unit = {
    val driver = new SessionProbe(Endpoint)
    SparkInternals.atShutdown { () =>
      // If the driver does not answer, another executor of this node may still read them.
      val isOver = Try(driver.ask[Boolean](IsOver).getOrElse(true)).getOrElse(false)
      if (isOver) OpenResults.removeAll()
    }
    ()
  }

  /** On the driver, before the first result of a session is opened. */
  def begin(sc: SparkContext): Unit = synchronized {
    if (session ne sc) {
      session = sc
      moves.clear()
      endpoint = new DriverEndpoint(sc, Endpoint)({
        case IsOver => sc.isStopped
        case move: MayMove =>
          moves.update(move, moves.getOrElse(move, 0) + 1)
          moves(move) < PinnedTask.MisplacedLimit
      })
      if (sc.isLocal) sc.addSparkListener(new SparkListener {
        override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit =
          OpenResults.removeAll()
      })
    }
  }

  /** How a task asks whether it may move ([[stopMisplaced]]). */
  def calls: DriverCalls = endpoint.calls

  /**
   * Ends a task on a wrong node, so that Spark tries it again: the right node may have no executor
   * or no free core yet, or this is a speculative copy. Spark does not count the first ones as
   * failures.
   */
  def stopMisplaced(driver: DriverCalls, text: String): Nothing = {
    Thread.sleep(misplacedMillis)
    val task = TaskContext.get()
    if (driver.ask[Boolean](MayMove(task.stageId(), task.partitionId())))
      throw new TaskKilledException(text)
    throw new MisplacedException(text)
  }

  /** Runs `body`, which opens results, in a task. */
  def inTask[A](body: => A): A = {
    if (SessionProbe.isExecutor) hook
    body
  }
}
