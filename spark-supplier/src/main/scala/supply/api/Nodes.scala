package supply.api

import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.api.java.JavaRDD
import org.apache.spark.supply.SparkInternals

import supply.core.{FailureText, PlacementException}
import supply.run.TaskSlots
import supply.task.PinnedTask

/** The nodes that have executors, and the tasks that start ranks there. */
private[supply] object Nodes {
  /** The description of the job that starts ranks. */
  def startersName: String = TaskSlots.StartersName

  /** One partition for each host, to be computed there, with one [[starter]]. */
  def starters(sc: SparkContext, hosts: java.util.List[String]): JavaRDD[Array[Byte]] = {
    val nodes = sc.makeRDD(hosts.asScala.toSeq.map(host => host -> Seq(host))).map(starter)
    SparkInternals.coresOnly(sc).fold(nodes)(nodes.withResources).toJavaRDD()
  }

  /**
   * In its task: the host's name, and after a line's end OMP_NUM_THREADS of the executor, which
   * PySpark overrides in Python's workers. The state of ranks is gone with their starter, so no retry
   * can replace it.
   */
  def starter(host: String): Array[Byte] = {
    if (TaskContext.get().attemptNumber() > 0) throw new PlacementException(
      s"the task that starts the ranks of $host has failed, and cannot be retried")
    if (PinnedTask.host != host) throw new PlacementException(
      s"the task that starts the ranks of $host landed on ${PinnedTask.host}: leave a task slot of $host free, or set " +
        "spark.locality.wait larger")
    s"$host\n${sys.env.getOrElse("OMP_NUM_THREADS", "")}".getBytes(UTF_8)
  }

  /** Why the starters of this run have failed; None: none has, or Spark does not know it yet. */
  def startersFailure(sc: SparkContext, run: String): Option[String] =
    SparkInternals.firstFailure(sc, TaskSlots.startersTag(run))
      .map(FailureText.ofTask(_, SparkInternals.hostOf(sc, _)))
}
