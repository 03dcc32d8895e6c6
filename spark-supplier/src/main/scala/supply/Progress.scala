package supply

import java.util.concurrent.{Executors, TimeUnit}

import scala.collection.concurrent.TrieMap

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{AccumulableInfo, SparkListener, SparkListenerExecutorMetricsUpdate, SparkListenerTaskEnd}

/**
 * Shows on stderr how far the tasks are: on a terminal one line that renews itself, else a line every few seconds. The figures
 * come with the executors' heartbeats (spark.executor.heartbeatInterval).
 *
 * @param accumulators ids of the accumulators in which the tasks count
 * @param line         what to show, given their totals and the seconds that have passed
 */
final class Progress(sc: SparkContext, accumulators: Seq[Long])(line: (Seq[Long], Double) => String)
    extends SparkListener with AutoCloseable {
  // The JVM can not tell whether its stderr is a terminal; launch/supply-run can.
  private val onTerminal = System.getenv("SUPPLY_TERMINAL") == "1" || System.console() != null
  private val start = System.nanoTime()
  private val byTask = TrieMap.empty[Long, Seq[Long]]
  private var shown = ""

  private val clock = Executors.newSingleThreadScheduledExecutor { (work: Runnable) =>
    val thread = new Thread(work, "supply-progress")
    thread.setDaemon(true)
    thread
  }

  sc.addSparkListener(this)
  private val periodMillis = if (onTerminal) 500L else 5000L
  clock.scheduleAtFixedRate(() => show(), periodMillis, periodMillis, TimeUnit.MILLISECONDS)

  override def onExecutorMetricsUpdate(update: SparkListenerExecutorMetricsUpdate): Unit =
    update.accumUpdates.foreach { case (task, _, _, values) => note(task, values) }

  override def onTaskEnd(end: SparkListenerTaskEnd): Unit =
    if (end.taskInfo != null) note(end.taskInfo.taskId, end.taskInfo.accumulables.toSeq)

  private def note(task: Long, values: Seq[AccumulableInfo]): Unit = {
    val counted = accumulators.flatMap(id => values.find(_.id == id).flatMap(_.update).collect { case n: Long => n })
    if (counted.size == accumulators.size) byTask.update(task, counted)
  }

  private def show(): Unit = synchronized {
    val seconds = (System.nanoTime() - start) / 1e9
    val now = s"supplier: ${line(accumulators.indices.map(i => byTask.values.map(_(i)).sum), seconds)}"
    if (onTerminal) System.err.print("\r" + now.padTo(shown.length, ' ')) else System.err.println(now)
    shown = now
  }

  /** Shows the last state and ends. */
  override def close(): Unit = {
    clock.shutdown()
    sc.removeSparkListener(this)
    show()
    if (onTerminal) System.err.println()
  }
}
