package supply.run

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.supply.{ScheduledTask, SparkInternals, StageState}
import org.slf4j.LoggerFactory

import supply.core.{MisplacedException, PairHeldException, PlacementException, SupplyException}
import supply.plan.HostNames
import supply.task.TaskMessage

/**
 * Stops a job, whose last stage has one task for each place, when
 *   - a task lands on another node than its place's, too often in a row ([[Places.tries]]);
 *   - the pair of a task is held by an attempt that Spark does not know;
 *   - a place has had no task for longer than the timeout, while no stage in front runs: Spark
 *     itself would wait for ever.
 * It also kills speculative copies, and asks for executors where tasks of ranks are missing.
 *
 * `stages`: what Spark's scheduler knows of the job. Spark's events would not do: its queues drop them
 * when a listener is slow. Its lock is taken before that of Spark's scheduler.
 */
private[supply] final class TaskWatch(sc: SparkContext, watched: Places, timeout: Double,
    stages: () => Seq[StageState], stop: SupplyException => Unit) {
  import TaskWatch._

  private val places = watched.hosts.places
  // A request for the places of nodes would let Spark end the executors of the other ranks.
  private val placement =
    if (watched.areRanks) Some(new ExecutorPlacement(sc, watched.hosts)) else None

  /** Places whose task has succeeded. A stage that Spark submits again starts the others only. */
  private val done = mutable.Set.empty[Int]

  /** Place to the time since when it has had no task. */
  private val missing = mutable.Map.empty[Int, Long]

  /** Place to the number of times in a row that its task has landed on another node. */
  private val misplaced = mutable.Map.empty[Int, Int].withDefaultValue(0)

  private var lateBefore = Set.empty[Int]
  private var progressBefore = Seq.empty[Product]

  /** Takes the next step; call it periodically. */
  def check(): Unit =
    // Without the lock: YARN may take minutes to answer, and meanwhile tasks ask.
    placed().foreach { case (tasks, areComplete) =>
      placement.foreach(_.improve(SparkInternals.executorSlots(sc), tasks, areComplete))
    }

  /** The tasks that run, and whether each place has its own; None: the job is stopped. */
  private def placed(): Option[(Seq[RunningTask], Boolean)] = synchronized {
    val (last, inFront) = stages().partition(_.isLast)
    val tasks = last.flatMap(_.tasks).filter(task => places.indices.contains(task.partition))
    tasks.filter(_.isSpeculative).foreach(kill)
    val known = HostNames.known(watched.hosts, tasks.map(_.host)).places
    val wellPlaced = tasks.filter(task => known(task.partition).isOn(task.host)).toSet
    misplaced --= wellPlaced.map(_.partition)
    note(last, inFront, tasks.map(_.partition).toSet)
    val late = missing.collect {
      case (place, since) if (System.nanoTime() - since) / 1e9 > timeout => place
    }.toSet
    // In two checks: after a suspension, Spark may not have started its task yet.
    late.toSeq.sorted.find(lateBefore) match {
      case Some(place) =>
        stop(new PlacementException(
            f"${watched.name(place)}%s has had no Spark task for $timeout%.0f s: no executor has a free core for it. " +
              whoHoldsCores(last ++ inFront) + " (--timeout)",
            isTimeout = true))
        None
      case None =>
        lateBefore = late
        Some(tasks.map(task => RunningTask(task.executor, wellPlaced(task))) ->
          (missing.isEmpty && tasks.forall(wellPlaced)))
    }
  }

  /** Notes the places that miss their tasks. While a stage in front runs, or when any stage has changed, none is missing. */
  private def note(last: Seq[StageState], inFront: Seq[StageState], running: Set[Int]): Unit = {
    // Spark may write a checkpoint of the source in the same group: its partitions are no places.
    done ++= last.flatMap(_.done).filter(places.indices.contains)
    val waiting = last.flatMap(_.waiting).filter(places.indices.contains).toSet
    val needed: Set[Int] =
      if (waiting.nonEmpty || inFront.isEmpty) waiting else places.indices.toSet -- done
    val progress = last.map(stage => (stage.stage, stage.attempt)) ++
      inFront.map(stage => (stage.stage, stage.attempt, stage.succeeded))
    if (inFront.exists(_.running > 0) || progress != progressBefore) missing.clear()
    progressBefore = progress
    val now = needed -- running
    missing --= missing.keySet.toSet -- now
    now.foreach(place => if (!missing.contains(place)) missing(place) = System.nanoTime())
  }

  /** It cannot attach while the first attempt lives, and on another node it has no pair. */
  private def kill(copy: ScheduledTask): Unit = {
    sc.killTaskAttempt(copy.id, interruptThread = true,
      "each rank or node has one task only: this is a speculative copy (spark.speculation)")
    ()
  }

  /** To the tasks of the job. */
  val answers: PartialFunction[Any, Any] = {
    case TaskMessage.Ends(_, place, task, cause) => cause match {
        case elsewhere: MisplacedException =>
          synchronized(mayMove(place, elsewhere.getMessage))
        case held: PairHeldException =>
          // If Spark does not know the attempt that holds the pair, nobody ends that attempt.
          val isKnown = runs(other => other.partition == place && other.id != task)
          if (!isKnown) stop(held)
          isKnown
        case hopeless =>
          // The failure of a speculative copy means nothing.
          if (!runs(copy => copy.id == task && copy.isSpeculative)) stop(hopeless)
          false
      }
  }

  private def runs(isThis: ScheduledTask => Boolean): Boolean =
    stages().flatMap(_.tasks).exists(isThis)

  private def mayMove(place: Int, message: String): Boolean = {
    val tries = watched.tries(timeout)
    misplaced(place) += 1
    val times = misplaced(place)
    if (times < tries) {
      val text = s"$message: it is placed again ($times of ${tries - 1})"
      if (watched.areRanks) log.warn(text) else log.info(text)
    } else {
      stop(new PlacementException(
          s"$message, for the ${tries}th time in a row: has that node lost its executor? See the log of " +
            "Spark's workers or YARN's node managers"))
    }
    times < tries
  }

  private def whoHoldsCores(own: Seq[StageState]): String =
    TaskSlots.holders(sc, except = own.map(_.stage)) match {
      case Seq() => "Are the executors lost for good? See the log of Spark's workers"
      case others => others.mkString("Other jobs hold cores: ", ", ",
          ": wait for their end, or give Spark more cores")
    }
}

private object TaskWatch {
  private val log = LoggerFactory.getLogger(classOf[TaskWatch])
}
