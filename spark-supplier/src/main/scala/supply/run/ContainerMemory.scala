package supply.run

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.supply.SparkInternals

import supply.core.ConfigException
import supply.pair.ConfigFiles
import supply.plan.Hostfile

/**
 * The memory of an executor's container on YARN. YARN counts the pages of a mapped file as the
 * executor's, and kills a container that uses more than its limit (heap and memory overhead). So
 * the overhead must hold the mapped files, and the pages of an LMDB that its tasks map.
 */
private[supply] object ContainerMemory {
  private final val MiB = 1L << 20

  /** What a task may map of a file that it reads. */
  final val PagesOfSource: Long = 64L << 20

  /** Spark's own default for what a JVM needs besides its heap. */
  private def ownMiB(conf: SparkConf): Long = {
    val share = conf.getDouble("spark.executor.memoryOverheadFactor", 0.1) * conf.getSizeAsMb(
      "spark.executor.memory", "1g")
    math.max(share.toLong, conf.getSizeAsMb("spark.executor.minMemoryOverhead", "384m"))
  }

  /** The most that the pairs of one node map, in bytes, and the number of these pairs. */
  private def mapped(configFiles: ConfigFiles, hosts: Hostfile): (Long, Int) = {
    val pairs = hosts.places.map(_.localRank).max + 1
    (configFiles.read(pairs).take(pairs).map(_.mappedBytes + PagesOfSource).sum, pairs)
  }

  /** Spark's settings as the driver of a submitted application will have them. */
  def settings(options: Map[String, String], executorMemory: String): SparkConf = {
    val conf = new SparkConf(false).setAll(options).set("spark.executor.memory", executorMemory)
    SparkInternals.setDefaults(conf)
    conf
  }

  /** spark.executor.memoryOverhead, in MiB, for executors that each feed all ranks of a node. */
  def overheadMiB(conf: SparkConf, configFiles: ConfigFiles, hosts: Hostfile): Long =
    ownMiB(conf) + (mapped(configFiles, hosts)._1 + MiB - 1) / MiB

  /** Refuses a limit with which YARN would kill the executors during the run. */
  def require(
      sc: SparkContext, configFiles: ConfigFiles, hosts: Hostfile): Unit =
    if (sc.master == "yarn") {
      val conf = sc.getConf
      val set = conf.getOption("spark.executor.memoryOverhead").map(_ =>
        conf.getSizeAsMb("spark.executor.memoryOverhead"))
      val overhead = set.getOrElse(ownMiB(conf))
      val needed = overheadMiB(conf, configFiles, hosts)
      if (overhead < needed) {
        val (bytes, pairs) = mapped(configFiles, hosts)
        throw new ConfigException(
          s"the executors' containers are too small: spark.executor.memoryOverhead is $overhead MiB, but YARN also counts the " +
            s"mapped files of $pairs pairs a node and the pages of an LMDB (${bytes / MiB} MiB): set it to ${needed}m, or make ring= smaller")
      }
    }
}
