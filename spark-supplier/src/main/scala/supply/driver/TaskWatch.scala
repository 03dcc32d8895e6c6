package supply.driver

import java.util.concurrent.{Executors, TimeUnit}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.{ExceptionFailure, SparkContext, Success, TaskEndReason, TaskKilled}
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart, SparkListenerStageSubmitted, SparkListenerTaskEnd, SparkListenerTaskStart}
import org.apache.spark.supply.SparkInternals
import org.slf4j.LoggerFactory

import supply.core.{PlacementException, RankException, SupplyException}
import supply.executor.{HeldPair, Misplaced}
import supply.plan.Hostfile

/**
 * Says when to give up: when a task fails with what another attempt can not mend, when it lands
 * elsewhere than on its rank's node again and again, and when a rank has had no task for longer
 * than the time limit. Meanwhile it sees to it that executors come up where tasks are missing.
 * Where executors are lost for good, Spark itself waits for new ones for ever.
 *
 * @param group
 *   of the job whose last stage has one task a rank
 */
private[supply] final class TaskWatch(
    sc: SparkContext, group: String, hosts: Hostfile, timeout: Double,
    giveUp: SupplyException => Unit)
    extends SparkListener with AutoCloseable {

  private val ranks = hosts.places.size
  private val placement = new ExecutorPlacement(sc, hosts)
  private var stage = -1
  private val running = mutable.Map.empty[Int, Int].withDefaultValue(0)

  /** By the task's number. */
  private val tasks = mutable.Map.empty[Long, RunningTask]

  /**
   * Ranks whose task has succeeded. Where Spark submits the stage again, it starts tasks for the
   * others only.
   */
  private val done = mutable.Set.empty[Int]

  /** Rank to the time since when it has no task. */
  private val missing = mutable.Map.empty[Int, Long]

  /** Rank to the number of times in a row that its task has landed elsewhere. */
  private val misplaced = mutable.Map.empty[Int, Int].withDefaultValue(0)

  private val clock = Executors.newSingleThreadScheduledExecutor { (work: Runnable) =>
    val thread = new Thread(work, "supply-task-watch")
    thread.setDaemon(true)
    thread
  }
  clock.scheduleWithFixedDelay(() => look(), 1, 1, TimeUnit.SECONDS)

  override def onJobStart(start: SparkListenerJobStart): Unit = synchronized {
    if (start.properties != null && start.properties.getProperty("spark.jobGroup.id") == group)
      stage = start.stageIds.max
  }

  override def onStageSubmitted(submitted: SparkListenerStageSubmitted): Unit = synchronized {
    if (submitted.stageInfo.stageId == stage) (0 until ranks).foreach(hasNoTask)
  }

  /** Unless it needs none, or has one of an earlier attempt of the stage: these go on. */
  private def hasNoTask(rank: Int): Unit =
    if (!done(rank) && running(rank) == 0) missing.put(rank, System.nanoTime())

  override def onTaskStart(start: SparkListenerTaskStart): Unit = synchronized {
    if (start.stageId == stage) {
      val rank = start.taskInfo.partitionId
      running(rank) += 1
      missing.remove(rank)
      val wellPlaced = hosts.places(rank).isOn(start.taskInfo.host)
      tasks(start.taskInfo.taskId) = RunningTask(start.taskInfo.executorId, wellPlaced)
      if (wellPlaced) misplaced.remove(rank)
      // It could not attach while the first attempt lives, and on another node it has no pair.
      if (start.taskInfo.speculative) {
        sc.killTaskAttempt(start.taskInfo.taskId, interruptThread = true,
          "a rank has one task: no speculation")
      }
    }
  }

  override def onTaskEnd(end: SparkListenerTaskEnd): Unit = synchronized {
    if (end.stageId == stage && end.taskInfo != null) {
      val rank = end.taskInfo.partitionId
      running(rank) -= 1
      tasks.remove(end.taskInfo.taskId)
      if (end.reason == Success) done += rank
      hasNoTask(rank)
      if (!end.taskInfo.speculative) hopeless(end.reason).foreach(giveUp)
      end.reason match {
        case killed: TaskKilled =>
          Misplaced.message(killed).foreach(placeAgain(rank, _))
          // Where Spark does not know of the one that holds it, nobody ends it.
          if (running(rank) == 0)
            HeldPair.message(killed).foreach(message => giveUp(new RankException(message)))
        case _ => ()
      }
    }
  }

  private def hopeless(reason: TaskEndReason): Option[SupplyException] = reason match {
    case failure: ExceptionFailure =>
      failure.exception.collect { case e: SupplyException if !e.retry => e }
    case _ => None
  }

  private def placeAgain(rank: Int, message: String): Unit = {
    misplaced(rank) += 1
    if (misplaced(rank) < Misplaced.Limit) {
      System.err.println(
        s"supplier: $message: it is placed again (${misplaced(rank)} of ${Misplaced.Limit - 1})")
    } else {
      giveUp(new PlacementException(
          s"$message, for the ${Misplaced.Limit}th time in a row: has that node lost its executor? See the log of " +
            "Spark's workers or YARN's node managers"))
    }
  }

  private def look(): Unit = {
    val late = synchronized(
      missing.collectFirst {
        case (rank, since) if (System.nanoTime() - since) / 1e9 > timeout => rank
      })
    late.foreach { rank =>
      clock.shutdown()
      giveUp(new PlacementException(
          f"rank $rank%d has had no Spark task for $timeout%.0f s: no executor has a free core for it. " +
            "Are the executors lost for good? See the log of Spark's workers (--timeout)"))
    }
    if (late.isEmpty) {
      // Where Spark goes down meanwhile there is nothing to improve.
      try improve()
      catch { case NonFatal(e) => TaskWatch.log.warn(s"executors can not be placed anew: $e") }
    }
  }

  private def improve(): Unit = {
    val (now, none) = synchronized((tasks.values.toSeq, missing.isEmpty))
    placement.improve(SparkInternals.executorSlots(sc), now,
      complete = none && now.forall(_.wellPlaced))
  }

  override def close(): Unit = {
    clock.shutdown()
    ()
  }
}

private object TaskWatch {
  private val log = LoggerFactory.getLogger(classOf[TaskWatch])
}
