package supply.task

import java.util.concurrent.{Executors, TimeUnit}

import scala.collection.mutable

import org.apache.spark.{ExceptionFailure, SparkContext, Success, TaskEndReason}
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart, SparkListenerStageSubmitted, SparkListenerTaskEnd, SparkListenerTaskStart}

import supply.{PlacementException, SupplyException}

/**
 * Says when to give up: when a task fails with what another attempt can not mend, and when a rank has had no task for longer
 * than the time limit. Where executors are lost for good, Spark itself waits for new ones for ever.
 *
 * @param group of the job whose last stage has one task a rank
 */
private[task] final class TaskWatch(
    sc: SparkContext, group: String, ranks: Int, timeout: Double, giveUp: SupplyException => Unit)
    extends SparkListener with AutoCloseable {

  private var stage = -1
  private val running = mutable.Map.empty[Int, Int].withDefaultValue(0)
  /** Rank to the time since when it has no task. */
  private val missing = mutable.Map.empty[Int, Long]

  private val clock = Executors.newSingleThreadScheduledExecutor { (work: Runnable) =>
    val thread = new Thread(work, "supply-task-watch")
    thread.setDaemon(true)
    thread
  }
  clock.scheduleWithFixedDelay(() => look(), 1, 1, TimeUnit.SECONDS)

  override def onJobStart(start: SparkListenerJobStart): Unit = synchronized {
    if (start.properties != null && start.properties.getProperty("spark.jobGroup.id") == group) stage = start.stageIds.max
  }

  override def onStageSubmitted(submitted: SparkListenerStageSubmitted): Unit = synchronized {
    if (submitted.stageInfo.stageId == stage) (0 until ranks).foreach(missing.put(_, System.nanoTime()))
  }

  override def onTaskStart(start: SparkListenerTaskStart): Unit = synchronized {
    if (start.stageId == stage) {
      val rank = start.taskInfo.partitionId
      running(rank) += 1
      missing.remove(rank)
      // It could not attach while the first attempt lives, and on another node it has no pair.
      if (start.taskInfo.speculative) {
        sc.killTaskAttempt(start.taskInfo.taskId, interruptThread = true, "a rank has one task: no speculation")
      }
    }
  }

  override def onTaskEnd(end: SparkListenerTaskEnd): Unit = synchronized {
    if (end.stageId == stage && end.taskInfo != null) {
      val rank = end.taskInfo.partitionId
      running(rank) -= 1
      if (running(rank) == 0 && end.reason != Success) missing.put(rank, System.nanoTime())
      if (!end.taskInfo.speculative) hopeless(end.reason).foreach(giveUp)
    }
  }

  private def hopeless(reason: TaskEndReason): Option[SupplyException] = reason match {
    case failure: ExceptionFailure => failure.exception.collect { case e: SupplyException if !e.retry => e }
    case _ => None
  }

  private def look(): Unit = {
    val late = synchronized(missing.collectFirst { case (rank, since) if (System.nanoTime() - since) / 1e9 > timeout => rank })
    late.foreach { rank =>
      clock.shutdown()
      giveUp(new PlacementException(f"rank $rank%d has had no Spark task for $timeout%.0f s: no executor has a free core for it. " +
        "Are the executors lost for good? See the log of Spark's workers (--timeout)"))
    }
  }

  override def close(): Unit = {
    clock.shutdown()
    ()
  }
}
