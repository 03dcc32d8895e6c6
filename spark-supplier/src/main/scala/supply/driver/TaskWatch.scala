package supply.driver

import scala.collection.mutable

import org.apache.spark.{ExceptionFailure, SparkContext, Success, TaskEndReason, TaskKilled}
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart, SparkListenerStageSubmitted, SparkListenerTaskEnd, SparkListenerTaskStart}
import org.apache.spark.supply.SparkInternals
import org.slf4j.LoggerFactory

import supply.core.{MisplacedException, PairHeldException, PlacementException, SupplyException, Threads}
import supply.executor.PinnedTask
import supply.plan.Hostfile

/**
 * Stops a job, whose last stage has one task for each rank, when
 *   - a task fails with an error that a retry cannot mend;
 *   - a task lands on another node than its rank's, [[PinnedTask.MisplacedLimit]] times in a row;
 *   - a rank has had no task for longer than the timeout: Spark itself would wait for ever.
 * It also asks for executors where tasks are missing. `stopCause`: why the task of that number (in
 * Spark) stopped without a failure that Spark counts.
 */
private[supply] final class TaskWatch(
    sc: SparkContext, group: String, hosts: Hostfile, timeout: Double,
    stop: SupplyException => Unit,
    stopCause: Long => Option[SupplyException])
    extends SparkListener with AutoCloseable {
  import TaskWatch._

  private val ranks = hosts.places.size
  private val placement = new ExecutorPlacement(sc, hosts)
  private var stage = -1
  private val running = mutable.Map.empty[Int, Int].withDefaultValue(0)

  /** By Spark's number of the task. */
  private val tasks = mutable.Map.empty[Long, RunningTask]

  /** Ranks whose task has succeeded. A stage that Spark submits again starts the others only. */
  private val done = mutable.Set.empty[Int]

  /** Rank to the time since when it has had no task. */
  private val missing = mutable.Map.empty[Int, Long]

  /** Rank to the number of times in a row that its task has landed on another node. */
  private val misplaced = mutable.Map.empty[Int, Int].withDefaultValue(0)

  private var lateBefore = Set.empty[Int]

  private val timer = Threads.repeat("supply-task-watch", periodMillis, periodMillis)(check())

  override def onJobStart(start: SparkListenerJobStart): Unit = synchronized {
    if (start.properties != null && start.properties.getProperty("spark.jobGroup.id") == group)
      stage = start.stageIds.max
  }

  override def onStageSubmitted(submitted: SparkListenerStageSubmitted): Unit = synchronized {
    if (submitted.stageInfo.stageId == stage) (0 until ranks).foreach(hasNoTask)
  }

  /** Does nothing if the rank needs no task, or has one of an earlier attempt of the stage. */
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
      // It cannot attach while the first attempt lives, and on another node it has no pair.
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
      if (!end.taskInfo.speculative) hopeless(end.reason).foreach(stop)
      if (end.reason.isInstanceOf[TaskKilled]) stopCause(end.taskInfo.taskId).foreach {
        case misplaced: MisplacedException => placeAgain(rank, misplaced.getMessage)
        // If Spark does not know the attempt that holds the pair, nobody ends that attempt.
        case held: PairHeldException => if (running(rank) == 0) stop(held)
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
    if (misplaced(rank) < PinnedTask.MisplacedLimit) {
      log.warn(
        s"$message: it is placed again (${misplaced(rank)} of ${PinnedTask.MisplacedLimit - 1})")
    } else {
      stop(new PlacementException(
          s"$message, for the ${PinnedTask.MisplacedLimit}th time in a row: has that node lost its executor? See the log of " +
            "Spark's workers or YARN's node managers"))
    }
  }

  /** A rank must be late in two checks: after a suspension, its start may not be handled yet. */
  private def check(): Unit = {
    val late = synchronized(missing.collect {
      case (rank, since) if (System.nanoTime() - since) / 1e9 > timeout => rank
    }.toSet)
    late.find(lateBefore) match {
      case Some(rank) =>
        timer.close()
        stop(new PlacementException(
            f"rank $rank%d has had no Spark task for $timeout%.0f s: no executor has a free core for it. " +
              "Are the executors lost for good? See the log of Spark's workers (--timeout)"))
      case None =>
        lateBefore = late
        improve()
    }
  }

  private def improve(): Unit = {
    val (now, none) = synchronized((tasks.values.toSeq, missing.isEmpty))
    placement.improve(SparkInternals.executorSlots(sc), now,
      complete = none && now.forall(_.wellPlaced))
  }

  override def close(): Unit = timer.close()
}

private object TaskWatch {
  private val log = LoggerFactory.getLogger(classOf[TaskWatch])

  private val periodMillis = 1000L
}
