package supply.api

import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.api.java.JavaRDD
import org.apache.spark.supply.SparkInternals

import supply.core.{FailureText, PlacementException}
import supply.plan.HostNames
import supply.run.{SlotKeeper, TaskSlots}
import supply.task.PinnedTask

/** The nodes that have executors. Hosts are named as Spark names them. */
private[supply] object Nodes {
  /** Number of task slots of each host. */
  def slots(sc: SparkContext): java.util.Map[String, Int] = TaskSlots.ofHosts(sc).asJava

  /** The description of the job that starts ranks. */
  def startersName: String = TaskSlots.StartersName

  /** As slots(), for starters, which need no GPU. */
  def starterSlots(sc: SparkContext): java.util.Map[String, Int] =
    TaskSlots.ofHostsForCoresOnly(sc).asJava

  /** The GPUs that Spark has assigned to the executors of each host, for CUDA_VISIBLE_DEVICES. */
  def gpus(sc: SparkContext): java.util.Map[String, String] =
    TaskSlots.gpusOfHosts(sc).map { case (host, addresses) =>
      host -> addresses.mkString(",")
    }.asJava

  /** The addresses by which each node can tell whether it is one of these hosts. */
  def addresses(hosts: java.util.List[String]): java.util.Map[String, java.util.List[String]] =
    HostNames.addresses(hosts.asScala.toSeq).map { case (host, found) =>
      host -> found.toSeq.asJava
    }.asJava

  /** Number of task slots that have a task. */
  def busySlots(sc: SparkContext): Int =
    SparkInternals.executorSlots(sc).map(_.activeTasks).sum

  /** The stages that have tasks now, for a text. */
  def holders(sc: SparkContext): String = TaskSlots.holders(sc).mkString(", ")

  /** Why no task can ever run; null: nothing is known. */
  def impossible(sc: SparkContext): String = TaskSlots.impossible(sc).orNull

  /** Whether all executors that the application asks for have registered; false: not known. */
  def isComplete(sc: SparkContext): Boolean = TaskSlots.areComplete(sc)

  /**
   * One partition for each host, to be computed there. Its only element is the host's name, and
   * after a line's end OMP_NUM_THREADS of the executor: PySpark overrides it in Python's workers.
   */
  def starters(sc: SparkContext, hosts: java.util.List[String]): JavaRDD[Array[Byte]] = {
    val nodes = sc.makeRDD(hosts.asScala.toSeq.map(host => host -> Seq(host))).map(starter)
    SparkInternals.coresOnly(sc).fold(nodes)(nodes.withResources).toJavaRDD()
  }

  /** The state of ranks is gone with their starter, so no retry can replace it. */
  private def starter(host: String): Array[Byte] = {
    if (TaskContext.get().attemptNumber() > 0) throw new PlacementException(
      s"the task that starts the ranks of $host has failed, and cannot be retried")
    if (PinnedTask.host != host) throw new PlacementException(
      s"the task that starts the ranks of $host landed on ${PinnedTask.host}: leave a task slot of $host free, or set " +
        "spark.locality.wait larger")
    s"$host\n${sys.env.getOrElse("OMP_NUM_THREADS", "")}".getBytes(UTF_8)
  }

  /** Why the starters of this run have failed; null: none has, or Spark does not know it yet. */
  def startersFailure(sc: SparkContext, run: String): String =
    SparkInternals.firstFailure(sc, run, TaskSlots.StartersName)
      .map(FailureText.ofTask(_, SparkInternals.hostOf(sc, _))).orNull

  /** Whether Spark starts executors for waiting tasks only. */
  def areDynamic(sc: SparkContext): Boolean = TaskSlots.areDynamic(sc)

  /** Holds task slots until its close(), by tasks on these hosts, or anywhere. */
  def keepSlots(sc: SparkContext, tasks: Int, hosts: java.util.List[String]): SlotKeeper =
    new SlotKeeper(sc, tasks, hosts.asScala.toSeq)

  /** The text of a failure of Spark, also if Spark has stopped. */
  def failureText(sc: SparkContext, error: Throwable): String =
    FailureText.of(error, executor => SparkInternals.hostOf(sc, executor))

  /** The text of an exception of which PySpark has kept the traceback only. */
  def pythonFailureText(message: String): String = FailureText.ofPython(message)
}
