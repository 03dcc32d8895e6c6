package org.apache.spark.supply

import java.io.Closeable
import java.lang.reflect.Constructor
import java.security.SecureRandom
import java.util.WeakHashMap
import java.util.concurrent.atomic.{AtomicLong, AtomicReference}

import scala.language.reflectiveCalls
import scala.util.control.{ControlThrowable, NonFatal}

import sun.reflect.ReflectionFactory

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
 * Its own constructor is never called: PartitionContext.make.
 *
 * Public API: `RDD.iterator` takes any TaskContext, and only Spark itself makes one.
 */
private[supply] final class PartitionContext
    extends TaskContextImpl(0, 0, 0, 0L, 0, 0, null, null, null, null, 0, null) with Interruptible {
  import PartitionContext.{Made, OfSpark4}

  private var whole: TaskContext = _

  def task: TaskContext = whole

  override def isInterrupted(): Boolean = task.isInterrupted()

  override private[spark] def killTaskIfInterrupted(): Unit = task.killTaskIfInterrupted()

  override private[spark] def getKillReason(): Option[String] = task.getKillReason()

  override def interruptible(): Boolean = task.asInstanceOf[OfSpark4].interruptible()

  override def pendingInterrupt(thread: Option[Thread], reason: String): Unit =
    task.asInstanceOf[OfSpark4].pendingInterrupt(thread, reason)

  /** Spark asks the task whether it may interrupt now. But the task would close the resource only at its own end. */
  override def createResourceUninterruptibly[T <: Closeable](make: => T): T = {
    var made = Option.empty[T]
    try {
      task.asInstanceOf[OfSpark4].createResourceUninterruptibly { () =>
        val resource = make
        addTaskCompletionListener[Unit](_ => resource.close())
        made = Some(resource)
        throw Made
      }
      ()
    } catch { case Made => () }
    made.get
  }

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
      blocks.releaseAllLocksForTask(taskAttemptId)
      // Spark says it of the attempts that it knows.
      if (SparkEnv.get.conf.getBoolean("spark.rdd.cache.visibilityTracking.enabled", false))
        blocks.master.updateRDDBlockVisibility(taskAttemptId, visible = failure.isEmpty)
      taskMemoryManager.cleanUpAllAllocatedMemory()
      addMetrics()
      InputFileBlockHolder.unset()
      PartitionContext.currentOf(task).foreach(_.set(None))
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

/** Methods of TaskContext, which it does not have in Spark 3.5. */
private[supply] trait Interruptible {
  def interruptible(): Boolean
  def pendingInterrupt(thread: Option[Thread], reason: String): Unit
  def createResourceUninterruptibly[T <: Closeable](make: => T): T
}

object PartitionContext {
  private type OfSpark43 = {
    def addTaskInterruptListener(listener: (TaskContext, String) => Unit): TaskContext
  }
  private type OfSpark4 = {
    def interruptible(): Boolean
    def pendingInterrupt(thread: Option[Thread], reason: String): Unit
    def createResourceUninterruptibly(make: () => Closeable): Closeable
  }

  /** The resource is there, and is not the task's. */
  private object Made extends ControlThrowable

  /**
   * Spark counts attempts from 0. These begin at random: an executor may have loaded this class for
   * several sessions, and Spark confuses attempts of one number.
   */
  private val attempts = new AtomicLong((1L << 62) + (new SecureRandom().nextLong() >>> 3))

  /** Runs `body` in the context of that partition, one of `partitions`, as if it were a task. */
  def use[A](task: TaskContext, partition: Int, partitions: Int)(body: TaskContext => A): A = {
    val attempt = attempts.getAndIncrement()
    val context = make(task, partition, partitions, attempt)
    SparkEnv.get.blockManager.registerTask(attempt)
    TaskContext.setTaskContext(context)
    currentOf(task).foreach(_.set(Some(context)))
    // Its own listeners are called by this alone.
    if (task.isInterrupted()) context.markInterrupted(task.getKillReason().getOrElse(""))
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

  /** Since Spark 4.3 a task has listeners of its kill: one of these tells its partition, which tells those that it has. */
  private lazy val hasInterruptListeners =
    classOf[TaskContext].getMethods.exists(_.getName == "addTaskInterruptListener")

  private val current = new WeakHashMap[TaskContext, AtomicReference[Option[PartitionContext]]]

  private def currentOf(task: TaskContext): Option[AtomicReference[Option[PartitionContext]]] =
    if (!hasInterruptListeners) None
    else Some(current.synchronized(current.computeIfAbsent(task,
          _ => {
            val partition = new AtomicReference(Option.empty[PartitionContext])
            task.asInstanceOf[OfSpark43].addTaskInterruptListener((_, reason) =>
              partition.get.foreach(_.markInterrupted(reason)))
            partition
          })))

  /**
   * TaskContextImpl has another constructor since Spark 4.3, where a task may have a part of a core.
   * A compiled class can call but one of them. What makes objects for serialization can call any.
   */
  private lazy val constructor: Constructor[_] =
    ReflectionFactory.getReflectionFactory.newConstructorForSerialization(
      classOf[PartitionContext], ofSpark)

  private lazy val cpusOf = classOf[TaskContext].getMethod(
    if (ofSpark.getParameterTypes.contains(classOf[BigDecimal])) "cpuAmount" else "cpus")

  private def ofSpark: Constructor[_] = classOf[TaskContextImpl].getConstructors.head

  private def make(task: TaskContext, partition: Int, partitions: Int, attempt: Long) = {
    val context = constructor.newInstance(
      Int.box(task.stageId()), Int.box(task.stageAttemptNumber()), Int.box(partition),
      Long.box(attempt), Int.box(task.attemptNumber()), Int.box(partitions),
      new TaskMemoryManager(SparkEnv.get.memoryManager, attempt), task.getLocalProperties,
      SparkEnv.get.metricsSystem, TaskMetrics.empty, cpusOf.invoke(task), task.resources())
      .asInstanceOf[PartitionContext]
    context.whole = task
    context
  }

  /** The context of the whole task. */
  def ofTask(context: TaskContext): TaskContext = context match {
    case partition: PartitionContext => partition.task
    case task => task
  }
}
