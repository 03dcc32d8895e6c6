package supply.driver

import scala.collection.mutable

import org.apache.spark.{ExceptionFailure, SparkContext, Success, TaskEndReason, TaskKilled}
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart, SparkListenerStageSubmitted, SparkListenerTaskEnd, SparkListenerTaskStart}
import org.apache.spark.supply.SparkInternals
import org.slf4j.LoggerFactory

import supply.core.{MisplacedException, PairHeldException, PlacementException, SupplyException, Threads}
import supply.executor.Misplaced

/**
 * Stops a job, whose last stage has one task for each place, when
 *   - a task fails with an error that a retry cannot mend;
 *   - a task lands on another node than its place's, [[Misplaced.Limit]] times in a row;
 *   - a place has had no task for longer than the timeout, while no stage in front runs: Spark
 *     itself would wait for ever.
 * It also asks for executors where tasks of ranks are missing. `stopCause`: why the task of that
 * number (in Spark) stopped without a failure that Spark counts.
 */
private[supply] final class TaskWatch(
    sc: SparkContext, group: String, watched: WatchedPlaces, timeout: Double,
    stop: SupplyException => Unit,
    stopCause: Long => Option[SupplyException])
    extends SparkListener with AutoCloseable {
  import TaskWatch._

  private val places = watched.hosts.places
  private val placement =
    if (watched.asksForExecutors) Some(new ExecutorPlacement(sc, watched.hosts)) else None
  private var stage = -1

  /** Those in front of the last one, and Spark's numbers of their tasks that run. */
  private var stagesInFront = Set.empty[Int]
  private val runningInFront = mutable.Set.empty[Long]

  private val running = mutable.Map.empty[Int, Int].withDefaultValue(0)

  /** By Spark's number of the task. */
  private val tasks = mutable.Map.empty[Long, RunningTask]

  /** Places whose task has succeeded. A stage that Spark submits again starts the others only. */
  private val done = mutable.Set.empty[Int]

  /** Place to the time since when it has had no task. */
  private val missing = mutable.Map.empty[Int, Long]

  /** Place to the number of times in a row that its task has landed on another node. */
  private val misplaced = mutable.Map.empty[Int, Int].withDefaultValue(0)

  private var lateBefore = Set.empty[Int]

  private val timer = Threads.repeat("supply-task-watch", periodMillis, periodMillis)(check())

  override def onJobStart(start: SparkListenerJobStart): Unit = synchronized {
    if (start.properties != null && start.properties.getProperty("spark.jobGroup.id") == group)
      begin(start)
  }

  private def begin(start: SparkListenerJobStart): Unit = {
    stage = start.stageIds.max
    stagesInFront = start.stageIds.toSet - stage
    waitAgain()
  }

  /** Begins the time again in which the places must get their tasks. */
  private def waitAgain(): Unit = places.indices.foreach(beginWait)

  override def onStageSubmitted(submitted: SparkListenerStageSubmitted): Unit = synchronized {
    if (submitted.stageInfo.stageId == stage) waitAgain()
  }

  /** Does nothing if the place needs no task, or has one of an earlier attempt of the stage. */
  private def beginWait(place: Int): Unit =
    if (!done(place) && running(place) == 0) missing.put(place, System.nanoTime())

  override def onTaskStart(start: SparkListenerTaskStart): Unit = synchronized {
    if (stagesInFront(start.stageId)) runningInFront += start.taskInfo.taskId
    if (start.stageId == stage) {
      val place = start.taskInfo.partitionId
      running(place) += 1
      missing.remove(place)
      val wellPlaced = places(place).isOn(start.taskInfo.host)
      tasks(start.taskInfo.taskId) = RunningTask(start.taskInfo.executorId, wellPlaced)
      if (wellPlaced) misplaced.remove(place)
      // It cannot attach while the first attempt lives, and on another node it has no pair.
      if (start.taskInfo.speculative) {
        sc.killTaskAttempt(start.taskInfo.taskId, interruptThread = true,
          "each rank or node has one task only: this is a speculative copy (spark.speculation)")
      }
    }
  }

  override def onTaskEnd(end: SparkListenerTaskEnd): Unit = synchronized {
    // Not every end has a start here: a task of a lost executor ends once more (Resubmitted), and
    // one of a stage that jobs share may have begun before this job.
    if (stagesInFront(end.stageId) && end.taskInfo != null) {
      runningInFront -= end.taskInfo.taskId
      if (runningInFront.isEmpty) waitAgain()
    }
    if (end.stageId == stage && end.taskInfo != null) {
      val place = end.taskInfo.partitionId
      running(place) -= 1
      tasks.remove(end.taskInfo.taskId)
      if (end.reason == Success) done += place
      beginWait(place)
      if (!end.taskInfo.speculative) hopeless(end.reason).foreach(stop)
      if (end.reason.isInstanceOf[TaskKilled]) stopCause(end.taskInfo.taskId).foreach {
        case misplaced: MisplacedException => placeAgain(place, misplaced.getMessage)
        // If Spark does not know the attempt that holds the pair, nobody ends that attempt.
        case held: PairHeldException => if (running(place) == 0) stop(held)
        case _ => ()
      }
    }
  }

  private def hopeless(reason: TaskEndReason): Option[SupplyException] = reason match {
    case failure: ExceptionFailure =>
      failure.exception.collect { case e: SupplyException if !e.retry => e }
    case _ => None
  }

  private def placeAgain(place: Int, message: String): Unit = {
    misplaced(place) += 1
    if (misplaced(place) < Misplaced.Limit) {
      log.warn(
        s"$message: it is placed again (${misplaced(place)} of ${Misplaced.Limit - 1})")
    } else {
      stop(new PlacementException(
          s"$message, for the ${Misplaced.Limit}th time in a row: has that node lost its executor? See the log of " +
            "Spark's workers or YARN's node managers"))
    }
  }

  /** A place must be late in two checks: after a suspension, its start may not be handled yet. */
  private def check(): Unit = {
    val late = synchronized(missing.collect {
      case (place, since)
          if runningInFront.isEmpty && (System.nanoTime() - since) / 1e9 > timeout => place
    }.toSet)
    late.toSeq.sorted.find(lateBefore) match {
      case Some(place) =>
        timer.close()
        stop(new PlacementException(
            f"${watched.name(place)}%s has had no Spark task for $timeout%.0f s: no executor has a free core for it. " +
              whoHoldsCores + " (--timeout)",
            isTimeout = true))
      case None =>
        lateBefore = late
        placement.foreach(improve)
    }
  }

  private def whoHoldsCores: String = TaskSlots.holders(sc, except = stage) match {
    case Seq() => "Are the executors lost for good? See the log of Spark's workers"
    case others => others.mkString("Other jobs hold cores: ", ", ",
        ": wait for their end, or give Spark more cores")
  }

  private def improve(placement: ExecutorPlacement): Unit = {
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
