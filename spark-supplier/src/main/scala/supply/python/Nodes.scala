package supply.python

import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.api.java.JavaRDD
import org.apache.spark.supply.SparkInternals

/** The nodes that have executors. Hosts are named as Spark names them. */
object Nodes {

  /** Number of task slots of each host. */
  def slots(sc: SparkContext): java.util.Map[String, Int] =
    SparkInternals.executorSlots(sc).groupBy(_.host).map { case (host, executors) =>
      host -> executors.map(executor => executor.cores / executor.coresPerTask).sum
    }.asJava

  /** Whether all executors that the application asks for have registered. */
  def isComplete(sc: SparkContext): Boolean = {
    val registered = SparkInternals.executorSlots(sc).size
    val wanted = if (sc.isLocal) 1 else sc.getConf.getInt("spark.executor.instances", 0)
    wanted > 0 && registered >= wanted
  }

  /** One partition for each host, to be computed on that host. Its only element is the host's name. */
  def starters(sc: SparkContext, hosts: java.util.List[String]): JavaRDD[Array[Byte]] =
    sc.makeRDD(hosts.asScala.toSeq.map(host => host.getBytes(UTF_8) -> Seq(host))).toJavaRDD()
}
