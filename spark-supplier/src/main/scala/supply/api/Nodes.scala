package supply.api

import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.api.java.JavaRDD
import org.apache.spark.supply.SparkInternals

import supply.core.FailureText
import supply.plan.HostNames
import supply.run.TaskSlots

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

  /** Whether all executors that the application asks for have registered; false: not known. */
  def isComplete(sc: SparkContext): Boolean = TaskSlots.areComplete(sc)

  /**
   * One partition for each host, to be computed there. Its only element is the host's name, and
   * after a line's end OMP_NUM_THREADS of the executor: PySpark overrides it in Python's workers.
   */
  def starters(sc: SparkContext, hosts: java.util.List[String]): JavaRDD[Array[Byte]] = {
    val nodes = sc.makeRDD(hosts.asScala.toSeq.map(host => host -> Seq(host)))
      .map(host => s"$host\n${sys.env.getOrElse("OMP_NUM_THREADS", "")}".getBytes(UTF_8))
    SparkInternals.coresOnly(sc).fold(nodes)(nodes.withResources).toJavaRDD()
  }

  /** The text of a failure of Spark, also if Spark has stopped. */
  def failureText(sc: SparkContext, error: Throwable): String =
    FailureText.of(error, executor => SparkInternals.hostOf(sc, executor))

  /** The text of an exception of which PySpark has kept the traceback only. */
  def pythonFailureText(message: String): String = FailureText.ofPython(message)
}
