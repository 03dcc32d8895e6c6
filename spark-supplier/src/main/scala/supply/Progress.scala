package supply

import java.util.concurrent.{Executors, TimeUnit}

import scala.collection.concurrent.TrieMap

import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{AccumulableInfo, SparkListener, SparkListenerExecutorMetricsUpdate, SparkListenerTaskEnd}

import supply.task.PinnedJob

/**
 * Shows on stderr how far the tasks are: on a terminal one line that renews itself, else a line every few seconds. The figures
 * come with the executors' heartbeats (spark.executor.heartbeatInterval).
 */
final class Progress(sc: SparkContext, job: PinnedJob, expected: Option[Long]) extends SparkListener with AutoCloseable {
  // The JVM can not tell whether its stderr is a terminal; launch/supply-run can.
  private val onTerminal = System.getenv("SUPPLY_TERMINAL") == "1" || System.console() != null
  private val start = System.nanoTime()
  /** By task: elements and bytes. */
  private val byTask = TrieMap.empty[Long, (Long, Long)]
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
    def value(id: Long) = values.find(_.id == id).flatMap(_.update).collect { case n: Long => n }
    for (elements <- value(job.elementsId); bytes <- value(job.bytesId)) byTask.update(task, (elements, bytes))
  }

  private def show(): Unit = synchronized {
    val totals = byTask.values.toSeq
    val elements = totals.map(_._1).sum
    val bytes = totals.map(_._2).sum
    val seconds = (System.nanoTime() - start) / 1e9
    val share = expected.filter(_ > 0).map(all => f" of $all%d (${100.0 * elements / all}%.0f %%)").getOrElse("")
    val line = f"supplier: $elements%d$share elements, ${bytes / 1e9}%.3f GB, ${bytes / 1e9 / seconds}%.3f GB/s, $seconds%.0f s"
    if (onTerminal) System.err.print("\r" + line.padTo(shown.length, ' ')) else System.err.println(line)
    shown = line
  }

  /** Shows the last state and ends. */
  override def close(): Unit = {
    clock.shutdown()
    sc.removeSparkListener(this)
    show()
    if (onTerminal) System.err.println()
  }
}
