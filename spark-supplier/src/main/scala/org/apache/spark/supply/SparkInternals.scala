package org.apache.spark.supply

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.{ExecutorAllocationClient, SparkConf, SparkContext, SparkEnv}
import org.apache.spark.rdd.RDD
import org.apache.spark.resource.{ResourceProfile, ResourceProfileBuilder, TaskResourceRequests}
import org.apache.spark.scheduler.{ExecutorCacheTaskLocation, SparkListener}
import org.apache.spark.storage.RDDBlockId
import org.apache.spark.util.{ShutdownHookManager, Utils}

/**
 * What a registered executor offers.
 *
 * @param deviceSlots
 *   tasks for which it has GPUs and other resources, as spark.task.resource.* asks for them
 * @param gpus
 *   addresses of its GPUs
 */
final case class ExecutorSlots(id: String, host: String, cores: Int, coresPerTask: BigDecimal,
    activeTasks: Int, deviceSlots: Int = Int.MaxValue, gpus: Seq[String] = Nil) {

  /** For tasks that need nothing but cores. */
  def coreSlots: Int = (cores / coresPerTask).toInt

  def slots: Int = math.min(coreSlots, deviceSlots)

  /** Cores of its slots: a task's cores are on one executor. */
  def coresOfSlots: BigDecimal = slots * coresPerTask
}

object SparkInternals {
  /**
   * The registered executors; in local mode the driver is one.
   *
   * Public API: `statusTracker.getExecutorInfos` has neither their ids nor their cores.
   */
  def executorSlots(sc: SparkContext): Seq[ExecutorSlots] = {
    val coresPerTask = coresOfTask(sc.getConf)
    val requests = resourcesOfTask(sc)
    SchedulerState.executors(sc).map { executor =>
      val addresses = (name: String) => executor.resources.get(name).toSeq.flatMap(_.addresses)
      val devices = requests.map { case (name, amount) =>
        // In local mode Spark never starts a task that asks for them.
        if (sc.isLocal) 0 else tasksOn(addresses(name).size, amount)
      }
      ExecutorSlots(executor.id, executor.host, executor.cores, coresPerTask,
        executor.activeTasks, (devices ++ Seq(Int.MaxValue)).min, addresses("gpu"))
    }
  }

  /** spark.task.cpus: since Spark 4.3, a task may have a part of a core. */
  def coresOfTask(conf: SparkConf): BigDecimal = BigDecimal(conf.get("spark.task.cpus", "1").trim)

  /** spark.task.resource.*: the amount of each resource. */
  def resourcesOfTask(sc: SparkContext): Map[String, Double] =
    (sc.resourceProfileManager.defaultResourceProfile.taskResources - ResourceProfile.CPUS)
      .map { case (name, request) => name -> request.amount }

  /** A task gets whole addresses, or shares one with others. */
  private def tasksOn(addresses: Int, amount: Double): Int =
    if (amount >= 1) addresses / amount.toInt else addresses * (1 / amount).toInt

  /**
   * For tasks that need cores, but neither the GPUs nor the memory limit of Python that the
   * application's other tasks have. None: all tasks are alike, or this cluster manager has no such
   * profiles.
   *
   * Public API: `RDD.withResources` fails if they are not supported, and keeps each profile.
   */
  def coresOnly(sc: SparkContext): Option[ResourceProfile] = {
    val others = resourcesOfTask(sc).nonEmpty ||
      sc.getConf.contains("spark.executor.pyspark.memory")
    val isFixed = !sc.isLocal && !isDynamic(sc)
    if (!others || !isFixed) None
    else {
      val manager = sc.resourceProfileManager
      val cores =
        new TaskResourceRequests().resource(ResourceProfile.CPUS, coresOfTask(sc.getConf).toDouble)
      val profile = new ResourceProfileBuilder().require(cores).build()
      if (Try(manager.isSupported(profile)).getOrElse(false))
        manager.getEquivalentProfile(profile).orElse(Some(profile))
      else None
    }
  }

  /** Public API: the settings, of which several decide it. */
  def isDynamic(sc: SparkContext): Boolean = Utils.isDynamicAllocationEnabled(sc.getConf)

  /**
   * What Spark says of the first task that failed in a job with that tag, as far as it knows: for a text.
   *
   * Public API: a SparkListener, which gets the events of all jobs, and only those that come later.
   */
  def firstFailure(sc: SparkContext, tag: String): Option[String] = {
    val failed = for {
      job <- sc.statusStore.jobsList(null) if job.jobTags.exists(isTag(_, tag))
      stage <- job.stageIds
      task <- Try(sc.statusStore.taskList(stage, 0, Int.MaxValue)).getOrElse(Nil)
      text <- task.errorMessage
    } yield (task.attempt, task.launchTime.getTime, text)
    failed.sortBy { case (attempt, launched, _) => (attempt, launched) }.headOption.map(_._3)
  }

  /** Spark Connect puts names of its own in front of a client's tags. */
  private def isTag(ofJob: String, tag: String) = ofJob == tag || ofJob.endsWith(s"_Tag_$tag")

  /**
   * The host of an executor, also of a lost one, for a text; None: not known.
   *
   * Public API: `statusTracker.getExecutorInfos` has the living ones only, without their ids.
   */
  def hostOf(sc: SparkContext, executor: String): Option[String] =
    Try(withoutPort(sc.statusStore.executorSummary(executor).hostPort)).toOption

  private def withoutPort(hostPort: String) = hostPort.replaceFirst(":[0-9]+$", "")

  /**
   * A preferred location, for a task that must run on that executor.
   *
   * Public API: preferred locations are texts, but only hosts are documented. Spark takes the
   * executor's id to begin at the first underscore, so a host with one is named alone.
   */
  def location(executor: ExecutorSlots): String =
    if (executor.host.contains('_')) executor.host
    else ExecutorCacheTaskLocation(executor.host, executor.id).toString

  /**
   * What Spark has stored of each partition of a persisted RDD; None: not of all.
   *
   * Public API: `getRDDStorageInfo` has totals only.
   */
  def storedBytes(rdd: RDD[_]): Option[IndexedSeq[Long]] = {
    val master = SparkEnv.get.blockManager.master
    val stored = rdd.partitions.indices.map(partition =>
      master.getBlockStatus(RDDBlockId(rdd.id, partition), askStorageEndpoints = false).values
        .filter(_.isCached).map(status => status.memSize + status.diskSize).headOption)
    if (stored.forall(_.isDefined)) Some(stored.flatten) else None
  }

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
   * Adds a listener, until closed. Events may be missing all the same: decide nothing by them.
   *
   * Public API: `addSparkListener` has one queue for all listeners, and a slow one delays the others.
   */
  def listen(sc: SparkContext, listener: SparkListener): AutoCloseable = {
    sc.listenerBus.addToQueue(listener, "supply")
    () => sc.removeSparkListener(listener)
  }

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
    val own: Runnable = () => ending()
    endings.add(own)
    () => { endings.remove(own); () }
  }

  private lazy val endings = {
    val endings = ConcurrentHashMap.newKeySet[Runnable]()
    ShutdownHookManager.addShutdownHook(ShutdownHookManager.DEFAULT_SHUTDOWN_PRIORITY + 1)(() =>
      runAtOnce(endings.asScala.toSeq))
    endings
  }

  /** Spark runs its hooks one after the other, and Hadoop gives all of them half a minute together. */
  private[supply] def runAtOnce(endings: Seq[Runnable]): Unit = {
    val threads = endings.map(new Thread(_, "supply-end"))
    threads.foreach(_.start())
    threads.foreach(_.join())
  }
}
