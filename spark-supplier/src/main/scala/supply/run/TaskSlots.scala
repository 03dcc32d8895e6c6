package supply.run

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.supply.{ExecutorSlots, SchedulerState, SparkInternals}
import org.slf4j.LoggerFactory

import supply.core.{Deadline, PlacementException}
import supply.plan.{HostNames, Hostfile}

/** Requires a task slot for each rank on its node: if a task waited for another, all would hang. */
private[supply] object TaskSlots {
  private val pollMillis = 100L

  /** Cores that the executors of one host offer, and that its ranks need. */
  private final case class Offer(host: String, offered: BigDecimal, needed: BigDecimal,
      coresPerTask: BigDecimal) {
    def ranks: Int = (offered.min(needed) / coresPerTask).toInt
    override def toString: String =
      s"$host offers $offered ${if (offered == 1) "core" else "cores"}, needs $needed"
  }

  /** Number of task slots of each host. */
  def ofHosts(sc: SparkContext): Map[String, Int] = sumOnHosts(sc, _.slots)

  /** As ofHosts(), for tasks with the profile of SparkInternals.coresOnly. */
  def ofHostsForCoresOnly(sc: SparkContext): Map[String, Int] =
    if (SparkInternals.coresOnly(sc).isEmpty) ofHosts(sc) else sumOnHosts(sc, _.coreSlots)

  /** The GPUs of the application on each host, without hosts that have none. */
  def gpusOfHosts(sc: SparkContext): Map[String, Seq[String]] =
    SparkInternals.executorSlots(sc).filter(_.gpus.nonEmpty).sortBy(_.id).groupBy(_.host).map {
      case (host, executors) => host -> executors.flatMap(_.gpus).distinct
    }

  private def sumOnHosts(sc: SparkContext, slots: ExecutorSlots => Int): Map[String, Int] =
    SparkInternals.executorSlots(sc).groupBy(_.host).map { case (host, executors) =>
      host -> executors.map(slots).sum
    }

  /** The stages that have tasks now, for a text; `except`: but not those, nor starters of ranks. */
  def holders(sc: SparkContext, except: Seq[Int] = Nil): Seq[String] = for {
    busy <- SchedulerState.busy(sc).sortBy(_.stage) if !except.contains(busy.stage)
    name = busy.description.orElse(sc.statusTracker.getStageInfo(busy.stage).map(_.name()))
    if !name.contains(SlotKeeper.Name) && !busy.tags.split(",").exists(_.endsWith(StartersTag))
  } yield s"${name.getOrElse("a job")} (stage ${busy.stage}, tasks: ${busy.tasks})"

  /** How spark_supplier describes the job that starts ranks. */
  private[supply] val StartersName = "supply: starting ranks"

  /** The tag of the job that starts the ranks of a run. Over Spark Connect jobs have no description. */
  private[supply] def startersTag(run: String): String = run + StartersTag
  private val StartersTag = "-starters"

  /** Whether Spark starts executors for waiting tasks, and ends them when they have none. */
  def areDynamic(sc: SparkContext): Boolean = !sc.isLocal && SparkInternals.isDynamic(sc)

  /** Whether no other executor will register; false: not known. */
  def areComplete(sc: SparkContext): Boolean = {
    val wanted =
      if (sc.isLocal) 1
      else if (areDynamic(sc))
        sc.getConf.getInt("spark.dynamicAllocation.maxExecutors", Int.MaxValue)
      else executorsOf(sc.master, sc.getConf)
    wanted > 0 && SparkInternals.executorSlots(sc).size >= wanted
  }

  /** How many the application asks for; 0: not known. */
  private[run] def executorsOf(master: String, conf: SparkConf): Int = {
    def number(setting: String) = conf.getInt(setting, 0)
    (number("spark.executor.instances"), master) match {
      case (instances, _) if instances > 0 => instances
      // Each worker gives the application one executor with all of its cores.
      case (_, LocalCluster(workers))
          if number("spark.executor.cores") == 0 && number("spark.cores.max") == 0 => workers.toInt
      case (_, Standalone()) if number("spark.executor.cores") > 0 =>
        number("spark.cores.max") / number("spark.executor.cores")
      case _ => 0
    }
  }

  /** Whether Spark's own cluster manager starts the executors. */
  def isStandalone(master: String): Boolean = master match {
    case Standalone() | LocalCluster(_) => true
    case _ => false
  }

  private val LocalCluster = "local-cluster\\[ *([0-9]+) *,.*".r
  private val Standalone = "spark://.*".r

  /** Why no task of the application can ever run; None: nothing is known. */
  def impossible(sc: SparkContext): Option[String] =
    SparkInternals.resourcesOfTask(sc).keys.headOption.filter(_ => sc.isLocal).map(name =>
      s"spark.task.resource.$name.amount is set, and Spark starts no such task with a local master (${sc.master}): leave " +
        "this setting out, or use a cluster")

  /**
   * Waits at most `timeout` seconds for executors to register. Returns the places with the names
   * that the executors have for them.
   */
  def require(sc: SparkContext, hosts: Hostfile, timeout: Double): Hostfile = {
    impossible(sc).foreach(text => throw new PlacementException(text, isTimeout = false))
    SlotKeeper.during(sc, hosts.places.size, hosts.places.flatMap(_.host)) {
      if (hosts.byHost.isEmpty) onAnyHost(sc, hosts.places.size, timeout)
      else onEachHost(sc, hosts, timeout)
      Places.known(sc, hosts)
    }
  }

  private def onAnyHost(sc: SparkContext, ranks: Int, timeout: Double): Unit = {
    var slots = 0
    new Deadline(timeout).poll(pollMillis) {
      slots = ofHosts(sc).values.sum
      slots >= ranks || sc.isLocal
    }
    if (slots < ranks)
      throw new PlacementException(
        s"$ranks ranks need $ranks tasks at once, but Spark (${sc.master}) has slots for $slots: " +
          (if (sc.isLocal) s"use master local[$ranks]"
           else "raise spark.executor.instances or spark.executor.cores, or lower spark.task.cpus"),
        isTimeout = !sc.isLocal)
  }

  private def onEachHost(sc: SparkContext, hosts: Hostfile, timeout: Double): Unit = {
    val placement = new ExecutorPlacement(sc, hosts)
    placement.request()
    var executors = Seq.empty[ExecutorSlots]
    new Deadline(timeout).poll(pollMillis) {
      executors = SparkInternals.executorSlots(sc)
      // In local mode there is one executor only, which registers a moment late.
      val isOver = short(offers(executors, hosts)).isEmpty || (sc.isLocal && executors.nonEmpty)
      if (!isOver) placement.improve(executors, Nil, complete = false)
      isOver
    }
    val found = offers(executors, hosts)
    val missing = short(found)
    placement.improve(executors, Nil, complete = true)
    if (missing.nonEmpty)
      throw new PlacementException(
        s"${found.map(_.ranks).sum} of ${hosts.places.size} ranks have a slot: ${missing.mkString("; ")} " +
          f"(waited $timeout%.0f s; --timeout). Give each node of the ranks an executor with a core for each of its ranks " +
          "(spark.executor.instances, spark.executor.cores), or lower its slots= and those of mpirun",
        isTimeout = !sc.isLocal)
  }

  private def short(offers: Seq[Offer]) = offers.filter(offer => offer.offered < offer.needed)

  private def offers(executors: Seq[ExecutorSlots], hosts: Hostfile): Seq[Offer] = {
    val coresPerTask = executors.headOption.map(_.coresPerTask).getOrElse(BigDecimal(1))
    HostNames.known(hosts, executors.map(_.host)).byHost.map { case (host, places) =>
      val here = executors.filter(executor => places.head.isOn(executor.host))
      Offer(host, here.map(_.coresOfSlots).sum, places.size * coresPerTask, coresPerTask)
    }
  }
}

/** A running task of this run: its executor, and whether it is on its rank's node. */
private[supply] final case class RunningTask(executor: String, wellPlaced: Boolean)

/**
 * Gets executors onto the nodes of the ranks. YARN knows which nodes are wanted, but starts a
 * container wherever there is space. If executors come up elsewhere, this asks for more executors,
 * at most [[ExecutorPlacement.Rounds]] times in a row, and keeps the misplaced ones meanwhile: YARN
 * would start the next one in the space that they release. It releases them when every rank has
 * what it needs, or when no other executor comes.
 */
private[supply] final class ExecutorPlacement(sc: SparkContext, hosts: Hostfile) {
  private val conf = sc.getConf
  private val possible =
    sc.master == "yarn" && hosts.byHost.nonEmpty && !conf.getBoolean(
      "spark.dynamicAllocation.enabled", defaultValue = false)
  private val wanted = math.max(conf.getInt("spark.executor.instances", 2), hosts.byHost.size)
  private val coresPerTask = SparkInternals.coresOfTask(conf)
  private val tasksPerExecutor =
    math.max(1, (conf.getInt("spark.executor.cores", 1) / coresPerTask).toInt)
  private var asked = wanted
  private var askedAt = System.nanoTime()
  private var rounds = 0
  private var released = Set.empty[String]

  /** Asks for executors on the nodes of the ranks. */
  def request(): Unit = if (possible) ask(wanted)

  /** Takes the next step; call it periodically. `complete`: every rank has what it needs. */
  def improve(registered: Seq[ExecutorSlots], tasks: Seq[RunningTask], complete: Boolean): Unit =
    if (possible) {
      val executors = registered.filterNot(executor => released(executor.id))
      val (surplus, enough) = compare(executors, tasks)
      if (complete) {
        rounds = 0
        if (asked > wanted) release(surplus.take(executors.size - wanted))
      } else if (!enough && surplus.nonEmpty && executors.size >= asked && executors.size - surplus.size < wanted) {
        if (rounds < ExecutorPlacement.Rounds) {
          rounds += 1
          ExecutorPlacement.log.warn(
            s"${surplus.size} of ${executors.size} executors came up on nodes that need no more " +
              s"(${surplus.map(_.host).distinct.mkString(", ")}): asking for others ($rounds of ${ExecutorPlacement.Rounds})")
          ask(wanted + surplus.size)
        }
      } else if (asked > wanted && (System.nanoTime() - askedAt) / 1e9 > ExecutorPlacement.HoldSeconds)
        release(surplus)
    }

  /** YARN's client counts tasks: each host gets enough to fill the executors of its ranks. */
  private def ask(total: Int): Unit = {
    asked = total
    askedAt = System.nanoTime()
    SparkInternals.requestExecutors(sc, total,
      hosts.byHost.map { case (host, places) =>
        host -> (places.size + tasksPerExecutor - 1) / tasksPerExecutor * tasksPerExecutor
      }.toMap)
  }

  private def release(surplus: Seq[ExecutorSlots]): Unit = {
    released ++= surplus.map(_.id)
    if (surplus.nonEmpty) sc.killExecutors(surplus.map(_.id))
    ask(wanted)
  }

  /** The idle executors that their node does not need, and whether all ranks have their cores. */
  private def compare(
      executors: Seq[ExecutorSlots], tasks: Seq[RunningTask]): (Seq[ExecutorSlots], Boolean) = {
    val busy = tasks.filter(_.wellPlaced).map(_.executor).toSet
    def busyElsewhere(executor: ExecutorSlots) =
      executor.activeTasks > tasks.count(_.executor == executor.id)
    var missing = hosts.byHost.map { case (host, places) =>
      host -> places.size * coresPerTask
    }.toMap
    val known = HostNames.known(hosts, executors.map(_.host)).byHost
    // Busy ones first: of two on one node the idle one is surplus.
    val surplus = executors.sortBy(executor => !busy(executor.id)).filter { executor =>
      known.find(_._2.head.isOn(executor.host)) match {
        case Some((host, _)) if missing(host) > 0 =>
          missing += host -> (missing(host) - executor.coresOfSlots)
          false
        case _ => !busy(executor.id) && !busyElsewhere(executor)
      }
    }
    (surplus, missing.values.forall(_ <= 0))
  }
}

private[supply] object ExecutorPlacement {
  private val log = LoggerFactory.getLogger(classOf[ExecutorPlacement])

  private final val Rounds = 5

  /** How long YARN may take to start other executors, while this keeps the misplaced ones. */
  private final val HoldSeconds = 20.0
}
