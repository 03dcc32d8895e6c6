package org.apache.spark.supply

import java.util.concurrent.TimeoutException

import scala.reflect.ClassTag

import org.apache.hadoop.conf.Configuration
import org.apache.spark.{ExecutorAllocationClient, SparkConf, SparkContext, SparkEnv}
import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.rdd.{DeterministicLevel, RDD}
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.rpc.{RpcCallContext, RpcEnv, ThreadSafeRpcEndpoint}
import org.apache.spark.util.{RpcUtils, ShutdownHookManager, Utils}

/** What an executor that has registered offers. */
final case class ExecutorSlots(id: String, host: String, cores: Int, coresPerTask: Int,
    activeTasks: Int)

/** What Spark knows but does not tell outside its own package. */
object SparkInternals {

  /** Tasks that the executors known at this moment can run at the same time. */
  def concurrentTasks(sc: SparkContext): Int =
    sc.maxNumConcurrentTasks(
      sc.resourceProfileManager.resourceProfileFromId(ResourceProfile.DEFAULT_RESOURCE_PROFILE_ID))

  /** Whether Spark may compute other elements each time it computes a partition again. */
  def isIndeterminate(rdd: RDD[_]): Boolean =
    rdd.outputDeterministicLevel == DeterministicLevel.INDETERMINATE

  /** Whether the elements of a partition come in the same order each time. */
  def isOrdered(rdd: RDD[_]): Boolean =
    rdd.outputDeterministicLevel == DeterministicLevel.DETERMINATE

  /** Executors known at this moment; the driver where Spark is local. */
  def executors(sc: SparkContext): Int = math.max(1, sc.getExecutorMemoryStatus.size - 1)

  /**
   * Lets the driver answer what tasks ask under that name, one question at a time, until it is
   * closed. Questions and answers are of classes that every Spark has: where it reads them an
   * executor may not know those of the user's jar.
   */
  def answerTasks(sc: SparkContext, name: String)(
      answer: PartialFunction[Any, Any]): AutoCloseable = {
    val env = sc.env.rpcEnv
    val endpoint = env.setupEndpoint(
      name,
      new ThreadSafeRpcEndpoint {
        override val rpcEnv: RpcEnv = env
        override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] =
          answer.andThen(context.reply _)
      }
    )
    () => env.stop(endpoint)
  }

  /**
   * A task's question to the driver. Throws a SparkException where no answer comes within
   * spark.rpc.askTimeout.
   */
  def askDriver[A: ClassTag](name: String, question: Any): A = {
    val env = SparkEnv.get
    RpcUtils.makeDriverRef(name, env.conf, env.rpcEnv).askSync[A](question)
  }

  /** The executors known at this moment; in local mode the driver is one. */
  def executorSlots(sc: SparkContext): Seq[ExecutorSlots] = {
    val coresPerTask = sc.getConf.getInt("spark.task.cpus", 1)
    sc.statusStore.executorList(activeOnly = true).filter(executor =>
      sc.isLocal || executor.id != SparkContext.DRIVER_IDENTIFIER)
      .map(executor =>
        ExecutorSlots(executor.id, executor.hostPort.replaceFirst(":[0-9]+$", ""),
          executor.totalCores, coresPerTask,
          executor.activeTasks))
  }

  /**
   * Asks the cluster for so many executors in all, and for each host as many as that many tasks
   * need. `SparkContext.requestTotalExecutors` passes the number of tasks on in the place of a
   * resource profile, so that the hosts have no effect.
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

  /** Waits until listeners have heard of all that has happened, but at most so long. */
  def awaitListeners(sc: SparkContext, millis: Long): Unit =
    try sc.listenerBus.waitUntilEmpty(millis)
    catch { case _: TimeoutException => () }

  /**
   * Hadoop's configuration with what Spark's settings add to it, on the driver and on executors.
   */
  def hadoopConfiguration: Configuration = SparkHadoopUtil.get.newConfiguration(SparkEnv.get.conf)

  /** Adds what spark-defaults.conf says, where it is not set, as spark-submit does. */
  def setDefaults(conf: SparkConf): Unit = {
    Utils.loadDefaultSparkProperties(conf)
    ()
  }

  /**
   * Runs `body`; if the JVM is asked to end meanwhile (SIGTERM, Ctrl-C), runs `ending` before Spark
   * takes anything down.
   */
  def beforeShutdown[A](ending: () => Unit)(body: => A): A = {
    val hook = atShutdown(ending)
    try body
    finally hook.close()
  }

  /** The same, until it is closed. */
  def atShutdown(ending: () => Unit): AutoCloseable = {
    val hook =
      ShutdownHookManager.addShutdownHook(ShutdownHookManager.DEFAULT_SHUTDOWN_PRIORITY + 1)(ending)
    () => {
      ShutdownHookManager.removeShutdownHook(hook)
      ()
    }
  }
}
