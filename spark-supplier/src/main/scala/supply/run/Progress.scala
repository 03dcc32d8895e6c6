package supply.run

import java.nio.file.{Files, Paths}

import scala.collection.concurrent.TrieMap

import org.apache.spark.scheduler.{AccumulableInfo, SparkListener, SparkListenerExecutorMetricsUpdate, SparkListenerTaskEnd}
import org.apache.spark.supply.SparkInternals
import org.apache.spark.util.LongAccumulator
import org.apache.spark.{SparkContext, Success}
import org.slf4j.LoggerFactory

import supply.core.Threads
import supply.task.TaskReport

/**
 * Shows how far the tasks are, until [[during]] ends: on a terminal a bar on stderr that renews
 * itself, else a line in the log every few seconds. `isQuiet`: the caller has a bar of its own. `state`
 * makes a text, and the share that is done, from the totals and the seconds since the start. Figures come
 * with the executors' heartbeats.
 */
private[supply] final class Progress(sc: SparkContext, counters: Seq[LongAccumulator],
    isQuiet: Boolean = false)(state: (Seq[Long], Double) => (Double, String))
    extends SparkListener {
  private val onTerminal = !isQuiet && Progress.isTerminal(sc)
  private val start = System.nanoTime()
  private val byTask = TrieMap.empty[Long, Seq[Long]]
  private val failed = TrieMap.empty[Long, Seq[Long]]
  private var shown = ""

  private val listening = SparkInternals.listen(sc, this)
  private val periodMillis = if (onTerminal) 500L else 5000L
  private val timer = Threads.repeat("supply-progress", periodMillis)(show(byTask))

  override def onExecutorMetricsUpdate(update: SparkListenerExecutorMetricsUpdate): Unit =
    update.accumUpdates.foreach { case (task, _, _, values) => note(byTask, task, values) }

  /** Spark adds what a task has counted to the counters when it succeeds, and only then. */
  override def onTaskEnd(end: SparkListenerTaskEnd): Unit = if (end.taskInfo != null) {
    byTask.remove(end.taskInfo.taskId)
    if (end.reason != Success) note(failed, end.taskInfo.taskId, end.taskInfo.accumulables.toSeq)
  }

  private def note(tasks: TrieMap[Long, Seq[Long]], task: Long,
      values: Seq[AccumulableInfo]): Unit = {
    val counted = counters.flatMap(counter =>
      values.find(_.id == counter.id).flatMap(_.update).collect { case n: Long => n })
    if (counted.size == counters.size) tasks.update(task, counted)
  }

  /** running: those whose counts the counters do not have yet. */
  private def show(running: TrieMap[Long, Seq[Long]]): Unit = synchronized {
    val seconds = (System.nanoTime() - start) / 1e9
    val counted = running.values ++ failed.values
    val (share, text) = state(
      counters.indices.map(i => counters(i).value + counted.map(_(i)).sum), seconds)
    // A rank that comes back receives elements again.
    val now = Progress.percent(share.min(1)) + text
    if (onTerminal) {
      val line = s"supplier: ${Progress.bar(share.min(1))}$now"
      System.err.print("\r" + line.padTo(shown.length, ' '))
      shown = line
    } else Progress.log.info(now)
  }

  /** Runs `body`, and at its end shows the last state and stops. */
  def during[A](body: => A): A = {
    var running = byTask
    try {
      val result = body
      // All have succeeded. The events of their ends may come later, or never.
      running = TrieMap.empty
      result
    } finally {
      timer.close()
      listening.close()
      show(running)
      if (onTerminal) System.err.println()
    }
  }
}

private[supply] object Progress {
  private val log = LoggerFactory.getLogger(classOf[Progress])

  /** A line in the log, as those of the progress. */
  def note(text: String): Unit = log.info(text)

  private val BarWidth = 20

  /** Whether to draw a bar. The launchers set SUPPLY_TERMINAL if stderr ends at a terminal. */
  private def isTerminal(sc: SparkContext): Boolean =
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

  /** False for an empty source. */
  private def isKnown(share: Double): Boolean = !share.isNaN && !share.isInfinite
}

/** The table at the end of a run, one row for each pair. */
private[supply] object Report {
  private val header =
    IndexedSeq("rank", "host", "partitions", "elements", "bytes", "GB/s", "waited for rank",
      "waited for source")

  /** GB/s run from attaching to the last release; the time waited for the source is sampled. */
  def table(reports: Seq[TaskReport]): String = {
    val rows = header +: reports.sortBy(_.rank).map { r =>
      IndexedSeq(
        r.rank.toString,
        r.host,
        r.partitions.toString,
        r.elements.toString,
        r.bytes.toString,
        f"${r.bytes.toDouble / math.max(1L, r.nanos)}%.3f",
        seconds(r.waitedForRank),
        seconds(r.waitedForSource))
    }
    val widths = header.indices.map(column => rows.map(_(column).length).max)
    rows.map { row =>
      row.zip(widths).zipWithIndex.map { case ((cell, width), column) =>
        if (column == 1) cell.padTo(width, ' ') else " " * (width - cell.length) + cell
      }.mkString("  ") + "\n"
    }.mkString
  }

  private def seconds(nanos: Long): String = f"${nanos / 1e9}%.3f s"
}
