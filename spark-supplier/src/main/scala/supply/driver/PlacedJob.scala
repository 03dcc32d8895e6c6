package supply.driver

import java.util.UUID

import scala.collection.mutable

import org.apache.spark.rdd.RDD
import org.apache.spark.supply.{DriverEndpoint, ScheduledTask, SchedulerState, SparkInternals, StageState}
import org.apache.spark.{SparkContext, SparkException}
import org.slf4j.LoggerFactory

import supply.core.{FailureText, JobGroup, MisplacedException, PairHeldException, PlacementException, SupplierEndedException, SupplyException, Threads}
import supply.executor.{HopelessErrors, Misplaced, TaskMessage}
import supply.plan.{HostNames, Hostfile}

/**
 * A job with one task for each place. It fails with the first cause, or if a place has had no task
 * for `timeout` seconds ([[TaskWatch]]). `data`: what its tasks read, if Spark must compute it first.
 */
private[supply] final class PlacedJob(sc: SparkContext, places: WatchedPlaces, timeout: Double,
    description: String, data: Option[RDD[_]] = None) {
  private val group = s"supply-${UUID.randomUUID()}"
  private lazy val inFront = data.fold(Set.empty[Int])(SchedulerState.shufflesOf)
  private val watch =
    new TaskWatch(sc, places, timeout, () => SchedulerState.stages(sc, group, inFront), fail)
  @volatile private var firstFailure: Option[SupplyException] = None

  /**
   * Runs `body`, which starts the job and waits for it; its tasks report their errors to its argument.
   * Throws the first cause if it fails.
   */
  def run[A](body: HopelessErrors => A): A = {
    val endpoint = new DriverEndpoint(sc, group)({
      case HopelessErrors.HopelessError(task, cause) => if (!watch.isCopy(task)) fail(cause)
    })
    val timer = Threads.repeat("supply-task-watch", PlacedJob.periodMillis,
      PlacedJob.periodMillis)(check())
    try JobGroup(sc, group, description) {
        firstFailure.foreach(throw _)
        body(new HopelessErrors(endpoint.calls))
      }
    catch { case e: SparkException => throw firstFailure.getOrElse(PlacedJob.causeOf(e)) }
    finally {
      timer.close()
      endpoint.close()
    }
  }

  /** Stops the job, for that reason unless it already has one. */
  def fail(cause: SupplyException): Unit = synchronized {
    if (firstFailure.isEmpty) {
      firstFailure = Some(cause)
      sc.cancelJobGroup(group)
    }
  }

  /** A task has stopped without a failure that Spark counts. */
  def stopped(task: TaskMessage.Stopped): Unit = watch.stopped(task.rank, task.task, task.cause)

  /** Spark does not cancel jobs that are not submitted yet. */
  private def check(): Unit =
    if (firstFailure.isDefined) sc.cancelJobGroup(group) else watch.check()
}

private[supply] object PlacedJob {
  private val periodMillis = 1000L

  /** The SupplyException that a task threw or that a cancelled job stands for, or `e` itself. */
  def causeOf(e: Throwable): Throwable =
    FailureText.causes(e).collectFirst {
      case known: SupplyException => known
      case spark: SparkException if isCancelled(spark.getMessage) =>
        new SupplierEndedException("Spark's job was cancelled before its end")
    }.getOrElse(e)

  private def isCancelled(message: String): Boolean = message match {
    case Cancelled() => true
    case _ => false
  }

  /** As Spark 4 and Spark 3.5 say it, but not of a job that ends with its SparkContext. */
  private val Cancelled =
    """(?s)(?:\[SPARK_JOB_CANCELLED\] )?Job \d+ cancelled (?!because SparkContext).*""".r
}

/**
 * The places of a job: a task each, at `hosts.places` of its partition. `name`: for messages;
 * `asksForExecutors`: whether the job asks for executors where tasks are missing.
 */
private[supply] final case class WatchedPlaces(
    hosts: Hostfile, name: Int => String, asksForExecutors: Boolean)

private[supply] object WatchedPlaces {
  def ranks(hosts: Hostfile): WatchedPlaces =
    WatchedPlaces(hosts, rank => s"rank $rank", asksForExecutors = true)

  /**
   * The first rank of each node. It asks for no executors: a request for these alone would let Spark
   * end the executors of the other ranks.
   */
  def nodes(hosts: Hostfile): WatchedPlaces = {
    val places =
      if (hosts.byHost.isEmpty) hosts.places.take(1) else hosts.byHost.map(_._2.head).toIndexedSeq
    WatchedPlaces(Hostfile(places),
      node =>
        places(node).host.fold("the ranks' node (without hosts, any node)")(host =>
          s"node $host"),
      asksForExecutors = false)
  }
}

/**
 * Stops a job, whose last stage has one task for each place, when
 *   - a task lands on another node than its place's, [[Misplaced.Limit]] times in a row;
 *   - the pair of a task is held by an attempt that Spark does not know;
 *   - a place has had no task for longer than the timeout, while no stage in front runs: Spark
 *     itself would wait for ever.
 * It also kills speculative copies, and asks for executors where tasks of ranks are missing.
 *
 * `stages`: what Spark's scheduler knows of the job. Spark's events would not do: its queues drop them
 * when a listener is slow.
 */
private[supply] final class TaskWatch(sc: SparkContext, watched: WatchedPlaces, timeout: Double,
    stages: () => Seq[StageState], stop: SupplyException => Unit) {
  import TaskWatch._

  private val places = watched.hosts.places
  private val placement =
    if (watched.asksForExecutors) Some(new ExecutorPlacement(sc, watched.hosts)) else None

  /** Places whose task has succeeded. A stage that Spark submits again starts the others only. */
  private val done = mutable.Set.empty[Int]

  /** Place to the time since when it has had no task. */
  private val missing = mutable.Map.empty[Int, Long]

  /** Place to the number of times in a row that its task has landed on another node. */
  private val misplaced = mutable.Map.empty[Int, Int].withDefaultValue(0)

  private var lateBefore = Set.empty[Int]
  private var progressBefore = Seq.empty[Product]

  /** Takes the next step; call it periodically. */
  def check(): Unit = synchronized {
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
      case Some(place) => stop(new PlacementException(
            f"${watched.name(place)}%s has had no Spark task for $timeout%.0f s: no executor has a free core for it. " +
              whoHoldsCores(last ++ inFront) + " (--timeout)",
            isTimeout = true))
      case None =>
        lateBefore = late
        placement.foreach(_.improve(SparkInternals.executorSlots(sc),
            tasks.map(task => RunningTask(task.executor, wellPlaced(task))),
            complete = missing.isEmpty && tasks.forall(wellPlaced)))
    }
  }

  /** Notes the places that miss their tasks. Their time begins again with what runs in front. */
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

  /** Whether a task is a speculative copy, whose failure means nothing. */
  def isCopy(task: Long): Boolean =
    stages().flatMap(_.tasks).exists(known => known.id == task && known.isSpeculative)

  /** The task of a place has stopped without a failure that Spark counts. */
  def stopped(place: Int, task: Long, cause: SupplyException): Unit = synchronized {
    cause match {
      case elsewhere: MisplacedException => placeAgain(place, elsewhere.getMessage)
      // If Spark does not know the attempt that holds the pair, nobody ends that attempt.
      case held: PairHeldException if !hasOther(place, task) => stop(held)
      case _ => ()
    }
  }

  private def hasOther(place: Int, task: Long): Boolean =
    stages().flatMap(_.tasks).exists(known => known.partition == place && known.id != task)

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
