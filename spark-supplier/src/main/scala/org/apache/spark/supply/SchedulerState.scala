package org.apache.spark.supply

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.language.reflectiveCalls

import org.apache.spark.{ShuffleDependency, SparkContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.resource.ResourceInformation
import org.apache.spark.scheduler.{Pool, ResultTask, Schedulable, TaskInfo, TaskSchedulerImpl, TaskSetManager}
import org.apache.spark.scheduler.cluster.{CoarseGrainedSchedulerBackend, ExecutorInfo}
import org.apache.spark.scheduler.local.LocalSchedulerBackend

import supply.core.ConfigException

/** A task that runs, or is about to. */
final case class ScheduledTask(id: Long, partition: Int, executor: String, host: String,
    isSpeculative: Boolean)

/** A stage that has running tasks. `tags`: of its job, with commas between them; `tasks`: in all. */
final case class BusyStage(stage: Int, description: Option[String], tags: String, tasks: Int)

/**
 * An attempt of a stage that is not over.
 *
 * @param isLast whether its tasks are those that the job was started for, and not in front of them
 * @param running number of its tasks that run
 * @param succeeded number of its tasks that have succeeded
 * @param done partitions whose task has succeeded, if isLast
 * @param waiting partitions that this attempt must still compute, or computes, if isLast
 * @param tasks those that run, if isLast
 */
final case class StageState(stage: Int, attempt: Int, isLast: Boolean, running: Int,
    succeeded: Int, done: Set[Int] = Set.empty, waiting: Set[Int] = Set.empty,
    tasks: Seq[ScheduledTask] = Nil)

/**
 * What Spark's scheduler knows, asked when it is needed.
 *
 * Public API: `SparkListener` and `statusTracker` get events from queues that drop them when a
 * listener is slow, and a setting of the user makes these queues short.
 */
object SchedulerState {
  private type Attempt = {
    def isZombie: Boolean
    def tasksSuccessful: Int
    def taskInfos: mutable.HashMap[Long, TaskInfo]
  }

  // A private val that an inner class uses.
  private type Executors = {
    def org$apache$spark$scheduler$cluster$CoarseGrainedSchedulerBackend$$executorDataMap
        : mutable.HashMap[String, _ <: ExecutorInfo]
  }

  /**
   * The stages of the jobs of `group`, and those that write one of `shuffles`, which a job of another
   * group may have begun.
   */
  def stages(sc: SparkContext, group: String, shuffles: Set[Int]): Seq[StageState] =
    ofAttempts(sc) {
      case attempt
          if attempt.taskSet.shuffleId.exists(shuffles) ||
            property(attempt, SparkContext.SPARK_JOB_GROUP_ID).contains(group) => stateOf(attempt)
    }

  /** The tasks of a stage that no other stage reads, which run. */
  def tasks(sc: SparkContext, stage: Int): Seq[ScheduledTask] =
    ofAttempts(sc) { case attempt if attempt.taskSet.stageId == stage => stateOf(attempt).tasks }
      .flatten

  /** The stages that hold task slots now. */
  def busy(sc: SparkContext): Seq[BusyStage] = ofAttempts(sc) {
    case attempt if attempt.runningTasks > 0 =>
      BusyStage(attempt.taskSet.stageId,
        property(attempt, SparkContext.SPARK_JOB_DESCRIPTION),
        property(attempt, SparkContext.SPARK_JOB_TAGS).getOrElse(""), attempt.numTasks)
  }

  private def ofAttempts[A](sc: SparkContext)(use: PartialFunction[TaskSetManager, A]): Seq[A] =
    sc.taskScheduler match {
      case scheduler: TaskSchedulerImpl =>
        known(scheduler.synchronized(attempts(scheduler.rootPool).collect(use)))
      case _ => Nil
    }

  private def property(attempt: TaskSetManager, name: String): Option[String] =
    Option(attempt.taskSet.properties).flatMap(all => Option(all.getProperty(name)))

  /** If Spark has no such member: the compiler cannot say so. */
  private[supply] def known[A](asked: => A): A =
    try asked
    catch {
      case e: NoSuchMethodException => throw new ConfigException(
          s"this Spark (${org.apache.spark.SPARK_VERSION}) does not say which executors and tasks it has (${e.getMessage}): use " +
            "Apache Spark in a version for which this jar was made, or a newer jar",
          e)
    }

  private def attempts(schedulable: Schedulable): Seq[TaskSetManager] = schedulable match {
    case pool: Pool => pool.schedulableQueue.asScala.toSeq.flatMap(attempts)
    case attempt: TaskSetManager => Seq(attempt)
    case _ => Nil
  }

  private def stateOf(attempt: TaskSetManager): StageState = {
    val isLast = attempt.tasks.headOption.exists(_.isInstanceOf[ResultTask[_, _]])
    val counts = StageState(attempt.taskSet.stageId, attempt.taskSet.stageAttemptId, isLast,
      attempt.runningTasks, attempt.asInstanceOf[Attempt].tasksSuccessful)
    if (isLast) withTasks(counts, attempt) else counts
  }

  private def withTasks(counts: StageState, attempt: TaskSetManager): StageState = {
    val internal = attempt.asInstanceOf[Attempt]
    val (done, open) = attempt.tasks.indices.partition(attempt.successful(_))
    def partitions(indices: Seq[Int]) = indices.map(attempt.tasks(_).partitionId).toSet
    counts.copy(
      done = partitions(done),
      // Another attempt computes what is left of an old one.
      waiting = if (internal.isZombie) Set.empty else partitions(open),
      tasks = internal.taskInfos.values.filterNot(_.finished).map(task =>
        ScheduledTask(task.taskId, task.partitionId, task.executorId, task.host,
          task.speculative)).toSeq)
  }

  /** The shuffles that an RDD reads, also through others. */
  def shufflesOf(rdd: RDD[_]): Set[Int] = {
    val seen = mutable.Set[RDD[_]](rdd)
    val open = mutable.Queue[RDD[_]](rdd)
    val shuffles = Set.newBuilder[Int]
    while (open.nonEmpty) open.dequeue().dependencies.foreach { dependency =>
      dependency match {
        case shuffle: ShuffleDependency[_, _, _] => shuffles += shuffle.shuffleId
        case _ =>
      }
      if (seen.add(dependency.rdd)) open += dependency.rdd
    }
    shuffles.result()
  }

  /**
   * A registered executor; in local mode the driver is one. A lost one stays registered until Spark
   * knows the reason, on Kubernetes for half a minute, but gets no task: it is none of these.
   */
  private[supply] final case class Executor(id: String, host: String, cores: Int,
      resources: Map[String, ResourceInformation], activeTasks: Int)

  private[supply] def executors(sc: SparkContext): Seq[Executor] = {
    val running = sc.taskScheduler match {
      case scheduler: TaskSchedulerImpl => scheduler.runningTasksByExecutors
      case _ => Map.empty[String, Int]
    }
    val registered = sc.schedulerBackend match {
      case _ if sc.isStopped => Nil
      case local: LocalSchedulerBackend =>
        val driver = sc.env.blockManager.blockManagerId
        // spark.driver.resource.*, which no task has.
        Seq(Executor(driver.executorId, driver.host, local.totalCores, sc.resources.toMap, 0))
      case cluster: CoarseGrainedSchedulerBackend => known(cluster.synchronized {
          cluster.asInstanceOf[Executors]
            .org$apache$spark$scheduler$cluster$CoarseGrainedSchedulerBackend$$executorDataMap
            .filter { case (id, _) => cluster.isExecutorActive(id) }
            .map { case (id, data) =>
              Executor(id, data.executorHost, data.totalCores, data.resourcesInfo, 0)
            }.toSeq
        })
      case _ => Nil
    }
    registered.map(executor =>
      executor.copy(activeTasks = running.getOrElse(executor.id, 0)))
  }
}
