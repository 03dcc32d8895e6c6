package org.apache.spark.supply

import java.util.concurrent.TimeoutException

import org.apache.spark.{ExecutorAllocationClient, SparkConf, SparkContext}
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.scheduler.ExecutorCacheTaskLocation
import org.apache.spark.util.{ShutdownHookManager, Utils}

/** What a registered executor offers. */
final case class ExecutorSlots(id: String, host: String, cores: Int, coresPerTask: Int,
    activeTasks: Int) {
  def slots: Int = cores / coresPerTask

  /** Cores of its slots: a task's cores are on one executor. */
  def coresOfSlots: Int = slots * coresPerTask
}

object SparkInternals {
  /**
   * Number of tasks that the registered executors can run at the same time.
   *
   * Public API: `defaultParallelism` is a user's setting, and knows nothing of spark.task.cpus.
   */
  def concurrentTasks(sc: SparkContext): Int =
    sc.maxNumConcurrentTasks(
      sc.resourceProfileManager.resourceProfileFromId(ResourceProfile.DEFAULT_RESOURCE_PROFILE_ID))

  /**
   * The registered executors; in local mode the driver is one.
   *
   * Public API: `statusTracker.getExecutorInfos` has neither their ids nor their cores.
   */
  def executorSlots(sc: SparkContext): Seq[ExecutorSlots] = {
    val coresPerTask = sc.getConf.getInt("spark.task.cpus", 1)
    sc.statusStore.executorList(activeOnly = true)
      .filter(executor => sc.isLocal || executor.id != SparkContext.DRIVER_IDENTIFIER)
      .map(executor =>
        ExecutorSlots(executor.id, executor.hostPort.replaceFirst(":[0-9]+$", ""),
          executor.totalCores, coresPerTask, executor.activeTasks))
  }

  /**
   * A preferred location, for a task that must run on that executor.
   *
   * Public API: preferred locations are texts, but only hosts are documented.
   */
  def location(executor: ExecutorSlots): String =
    ExecutorCacheTaskLocation(executor.host, executor.id).toString

  /**
   * Asks the cluster for `total` executors, with cores on each host for the given number of tasks.
   *
   * Public API: `SparkContext.requestTotalExecutors` passes the number of tasks on as the id of a
   * resource profile, so that Spark ignores the hosts.
   */
  def requestExecutors(sc: SparkContext, total: Int, tasksByHost: Map[String, Int]): Unit =
    sc.schedulerBackend match {
      case backend: ExecutorAllocationClient =>
        val profile = ResourceProfile.DEFAULT_RESOURCE_PROFILE_ID
        backend.requestTotalExecutors(Map(profile -> total), Map(profile -> tasksByHost.values.sum),
          Map(profile -> tasksByHost))
        ()
      case _ => ()
    }

  /**
   * Waits until listeners have received all events so far, but at most `millis`.
   *
   * Public API: none.
   */
  def awaitListeners(sc: SparkContext, millis: Long): Unit =
    try sc.listenerBus.waitUntilEmpty(millis)
    catch { case _: TimeoutException => () }

  /**
   * Adds the settings of spark-defaults.conf that `conf` does not have, as spark-submit does.
   *
   * Public API: none; `new SparkConf` reads system properties only.
   */
  def setDefaults(conf: SparkConf): Unit = {
    Utils.loadDefaultSparkProperties(conf)
    ()
  }

  /** As [[atShutdown]], while `body` runs. */
  def beforeShutdown[A](ending: () => Unit)(body: => A): A = {
    val hook = atShutdown(ending)
    try body
    finally hook.close()
  }

  /**
   * Runs `ending` when the JVM is asked to end (SIGTERM, Ctrl-C), before Spark stops; until closed.
   *
   * Public API: `Runtime.addShutdownHook` runs at the same time as Spark's own hook, which stops
   * the SparkContext that `ending` needs.
   */
  def atShutdown(ending: () => Unit): AutoCloseable = {
    val hook =
      ShutdownHookManager.addShutdownHook(ShutdownHookManager.DEFAULT_SHUTDOWN_PRIORITY + 1)(ending)
    () => {
      ShutdownHookManager.removeShutdownHook(hook)
      ()
    }
  }
}
