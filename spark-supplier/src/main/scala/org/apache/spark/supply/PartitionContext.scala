package org.apache.spark.supply

import java.security.SecureRandom
import java.util.concurrent.atomic.AtomicLong

import scala.util.control.NonFatal

import org.apache.spark.{SparkEnv, TaskContext, TaskContextImpl}
import org.apache.spark.executor.TaskMetrics
import org.apache.spark.memory.{MemoryMode, TaskMemoryManager}
import org.apache.spark.rdd.InputFileBlockHolder
import org.apache.spark.shuffle.FetchFailedException
import org.apache.spark.util.AccumulatorV2

/**
 * The context of one partition in a task that computes many, one after another: what Spark frees at
 * the end of a task is free after each partition. Spark counts memory and locks of blocks by the
 * number of the attempt, so it has one of its own. It is killed with its task.
 *
 * Public API: `RDD.iterator` takes any TaskContext, and only Spark itself makes one.
 */
private final class PartitionContext(
    val task: TaskContext, partition: Int, partitions: Int, attempt: Long)
    extends TaskContextImpl(
      task.stageId(),
      task.stageAttemptNumber(),
      partition,
      attempt,
      task.attemptNumber(),
      partitions,
      new TaskMemoryManager(SparkEnv.get.memoryManager, attempt),
      task.getLocalProperties,
      SparkEnv.get.metricsSystem,
      TaskMetrics.empty,
      task.cpus(),
      task.resources()) {
  override def isInterrupted(): Boolean = task.isInterrupted()

  override private[spark] def killTaskIfInterrupted(): Unit = task.killTaskIfInterrupted()

  override private[spark] def getKillReason(): Option[String] = task.getKillReason()

  /** Of the task: the scheduler then computes the lost shuffle files again. */
  override private[spark] def setFetchFailed(error: FetchFailedException): Unit =
    task.setFetchFailed(error)

  /** As Spark ends a task: each listener is called, and the first error stays. */
  private def end(failure: Option[Throwable]): Unit =
    try {
      failure.foreach(e => unlessFailed(failure)(markTaskFailed(e)))
      unlessFailed(failure)(markTaskCompleted(failure))
    } finally {
      val blocks = SparkEnv.get.blockManager
      blocks.memoryStore.releaseUnrollMemoryForThisTask(MemoryMode.ON_HEAP)
      blocks.memoryStore.releaseUnrollMemoryForThisTask(MemoryMode.OFF_HEAP)
      blocks.releaseAllLocksForTask(attempt)
      taskMemoryManager.cleanUpAllAllocatedMemory()
      addMetrics()
      InputFileBlockHolder.unset()
      TaskContext.setTaskContext(task)
    }

  private def unlessFailed(failure: Option[Throwable])(listeners: => Unit): Unit =
    try listeners
    catch { case NonFatal(e) => failure.fold(throw e)(_.addSuppressed(e)) }

  private def addMetrics(): Unit = {
    taskMetrics.mergeShuffleReadMetrics()
    val all = task.taskMetrics().nameToAccums
    taskMetrics.nameToAccums.foreach { case (name, own) =>
      all(name).asInstanceOf[AccumulatorV2[Any, Any]].merge(
        own.asInstanceOf[AccumulatorV2[Any, Any]])
    }
    taskMetrics._externalAccums.foreach(task.registerAccumulator(_))
  }
}

object PartitionContext {
  /**
   * Spark counts attempts from 0. These begin at random: an executor may have loaded this class for
   * several sessions, and Spark confuses attempts of one number.
   */
  private val attempts = new AtomicLong((1L << 62) + (new SecureRandom().nextLong() >>> 3))

  /** Runs `body` in the context of that partition, one of `partitions`, as if it were a task. */
  def use[A](task: TaskContext, partition: Int, partitions: Int)(body: TaskContext => A): A = {
    val attempt = attempts.getAndIncrement()
    val context = new PartitionContext(task, partition, partitions, attempt)
    SparkEnv.get.blockManager.registerTask(attempt)
    TaskContext.setTaskContext(context)
    // A thread that feeds a Python worker inherits the place where input_file_name() is kept.
    InputFileBlockHolder.initialize()
    val result =
      try body(context)
      catch {
        case e: Throwable =>
          context.end(Some(e))
          throw e
      }
    context.end(None)
    result
  }

  /** The context of the whole task. */
  def ofTask(context: TaskContext): TaskContext = context match {
    case partition: PartitionContext => partition.task
    case task => task
  }
}
