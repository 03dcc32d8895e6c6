package supply.driver

import java.nio.file.{Files, Paths}
import java.util.concurrent.{Executors, TimeUnit}

import scala.collection.concurrent.TrieMap

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{AccumulableInfo, SparkListener, SparkListenerExecutorMetricsUpdate, SparkListenerTaskEnd}
import org.apache.spark.supply.SparkInternals
import org.apache.spark.util.LongAccumulator

/**
 * Shows on stderr how far the tasks are: on a terminal a bar that renews itself, else a line every
 * few seconds. The figures come with the executors' heartbeats (spark.executor.heartbeatInterval).
 *
 * @param counters
 *   in which the tasks count
 * @param state
 *   given their totals and the seconds that have passed: the share that is done, and what to say of
 *   it
 */
final class Progress(sc: SparkContext, counters: Seq[LongAccumulator])(
    state: (Seq[Long], Double) => (Double, String))
    extends SparkListener with AutoCloseable {
  private val onTerminal = Progress.onTerminal(sc)
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
    val counted = counters.flatMap(counter =>
      values.find(_.id == counter.id).flatMap(_.update).collect { case n: Long => n })
    if (counted.size == counters.size) byTask.update(task, counted)
  }

  private def show(): Unit = synchronized {
    val seconds = (System.nanoTime() - start) / 1e9
    val (counted, text) = state(counters.indices.map(i => byTask.values.map(_(i)).sum), seconds)
    // A rank that has come back gets some, or all, once more.
    val share = counted.min(1)
    val now =
      s"supplier: ${if (onTerminal) Progress.bar(share) else ""}${Progress.percent(share)}$text"
    if (onTerminal) System.err.print("\r" + now.padTo(shown.length, ' '))
    else System.err.println(now)
    shown = now
  }

  /** Shows the last state and ends. */
  override def close(): Unit = {
    clock.shutdown()
    SparkInternals.awaitListeners(sc, 2000)
    sc.removeSparkListener(this)
    show()
    if (onTerminal) System.err.println()
  }
}

private object Progress {
  private val BarWidth = 20

  /**
   * Where Spark's own bar has the terminal's last line, ours stays in lines. A JVM whose stderr is
   * a pipe is told by launch/supply-run.
   */
  private def onTerminal(sc: SparkContext): Boolean =
    System.getenv("SUPPLY_TERMINAL") == "1" ||
      stderrIsTerminal && !sc.getConf.getBoolean("spark.ui.showConsoleProgress",
        defaultValue = false)

  private def stderrIsTerminal: Boolean =
    try Files.readSymbolicLink(Paths.get("/proc/self/fd/2")).toString.matches("/dev/(pts/|tty).*")
    catch { case _: java.io.IOException => false }

  private def bar(share: Double): String = {
    val done = if (isKnown(share)) (share * BarWidth).toInt else 0
    "[" + "#" * done + "." * (BarWidth - done) + "] "
  }

  private def percent(share: Double): String =
    if (isKnown(share)) f"${100 * share}%.0f %%, " else ""

  /** An empty source has no share. */
  private def isKnown(share: Double): Boolean = !share.isNaN && !share.isInfinite
}
