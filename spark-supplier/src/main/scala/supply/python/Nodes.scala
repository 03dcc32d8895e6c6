package supply.python

import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.api.java.JavaRDD

import supply.driver.TaskSlots

/** The nodes that have executors. Hosts are named as Spark names them. */
object Nodes {
  /** Number of task slots of each host. */
  def slots(sc: SparkContext): java.util.Map[String, Int] = TaskSlots.ofHosts(sc).asJava

  /** Whether all executors that the application asks for have registered; false: not known. */
  def isComplete(sc: SparkContext): Boolean = TaskSlots.areComplete(sc)

  /** One partition for each host, to be computed there. Its only element is the host's name. */
  def starters(sc: SparkContext, hosts: java.util.List[String]): JavaRDD[Array[Byte]] =
    sc.makeRDD(hosts.asScala.toSeq.map(host => host.getBytes(UTF_8) -> Seq(host))).toJavaRDD()
}
