package supply.driver

import org.apache.spark.SparkContext
import org.apache.spark.supply.{ExecutorSlots, SparkInternals}
import org.slf4j.LoggerFactory

import supply.plan.{HostNames, Hostfile}

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
  private val tasksPerExecutor =
    math.max(1, conf.getInt("spark.executor.cores", 1) / conf.getInt("spark.task.cpus", 1))
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
      host -> (places.size * conf.getInt("spark.task.cpus", 1))
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
