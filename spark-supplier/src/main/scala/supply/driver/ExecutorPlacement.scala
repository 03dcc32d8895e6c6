package supply.driver

import org.apache.spark.SparkContext
import org.apache.spark.supply.{ExecutorSlots, SparkInternals}

import supply.plan.Hostfile

/** A task of this run on an executor, and whether it is on its rank's node. */
private[supply] final case class RunningTask(executor: String, wellPlaced: Boolean)

/**
 * Gets executors onto the nodes of the ranks. YARN is told which nodes are wanted, but puts a
 * container wherever there is room. Where executors have come up elsewhere others are asked for
 * withMappedFile them, a bounded number of times in a row: room that was given back at once would
 * be where YARN puts the next one. They are given back when every rank has what it needs, or where
 * nothing else comes.
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
  private var givenBack = Set.empty[String]

  /** Asks for executors on the nodes of the ranks. */
  def request(): Unit = if (possible) ask(wanted)

  /**
   * To be called again and again.
   *
   * @param tasks
   *   of this run, as they run now
   * @param complete
   *   whether every rank has what it needs
   */
  def improve(registered: Seq[ExecutorSlots], tasks: Seq[RunningTask], complete: Boolean): Unit =
    if (possible) {
      val executors = registered.filterNot(executor => givenBack(executor.id))
      val (surplus, enough) = compare(executors, tasks)
      if (complete) {
        rounds = 0
        if (asked > wanted) giveBack(surplus.take(executors.size - wanted))
      } else if (!enough && surplus.nonEmpty && executors.size >= asked && executors.size - surplus.size < wanted) {
        if (rounds < ExecutorPlacement.Rounds) {
          rounds += 1
          System.err.println(
            s"supplier: ${surplus.size} of ${executors.size} executors came up on nodes that need no more " +
              s"(${surplus.map(_.host).distinct.mkString(", ")}): asking for others ($rounds of ${ExecutorPlacement.Rounds})")
          ask(wanted + surplus.size)
        }
      } else if (asked > wanted && (System.nanoTime() - askedAt) / 1e9 > ExecutorPlacement.HoldSeconds)
        giveBack(surplus)
    }

  /**
   * Of each host as many tasks as fill the executors that its ranks need: by these YARN's client
   * counts.
   */
  private def ask(total: Int): Unit = {
    asked = total
    askedAt = System.nanoTime()
    SparkInternals.requestExecutors(sc, total,
      hosts.byHost.map { case (host, places) =>
        host -> (places.size + tasksPerExecutor - 1) / tasksPerExecutor * tasksPerExecutor
      }.toMap)
  }

  private def giveBack(surplus: Seq[ExecutorSlots]): Unit = {
    givenBack ++= surplus.map(_.id)
    if (surplus.nonEmpty) sc.killExecutors(surplus.map(_.id))
    ask(wanted)
  }

  /**
   * Executors that do nothing, and without which the ranks of their node have their cores, too;
   * whether all ranks have theirs.
   */
  private def compare(
      executors: Seq[ExecutorSlots], tasks: Seq[RunningTask]): (Seq[ExecutorSlots], Boolean) = {
    val atWork = tasks.filter(_.wellPlaced).map(_.executor).toSet
    def busyElsewhere(executor: ExecutorSlots) =
      executor.activeTasks > tasks.count(_.executor == executor.id)
    var missing = hosts.byHost.map { case (host, places) =>
      host -> (places.size * conf.getInt("spark.task.cpus", 1))
    }.toMap
    // Those at work first: of two on one node the other one is surplus.
    val surplus = executors.sortBy(executor => !atWork(executor.id)).filter { executor =>
      hosts.byHost.find(_._2.head.isOn(executor.host)) match {
        case Some((host, _)) if missing(host) > 0 =>
          missing += host -> (missing(host) - executor.cores)
          false
        case _ => !atWork(executor.id) && !busyElsewhere(executor)
      }
    }
    (surplus, missing.values.forall(_ <= 0))
  }
}

private[supply] object ExecutorPlacement {
  private final val Rounds = 5

  /** What YARN may take to start others withMappedFile those that are held. */
  private final val HoldSeconds = 20.0
}
