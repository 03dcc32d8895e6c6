package supply.task

import java.net.InetAddress

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.util.LongAccumulator

import supply.PlacementException
import supply.config.{ConfigFiles, PairPaths}
import supply.contract.Schema
import supply.pair.Pair
import supply.plan.Hosts

/** What all tasks of a run have in common. */
final case class TaskSettings(
    configFiles: ConfigFiles,
    hosts: Hosts,
    schema: Schema,
    mainColumn: Int,
    blockElements: Int,
    timeout: Double)

/**
 * What one rank has been supplied with: elements and bytes of blocks by all attempts of its task, partitions and times (in
 * nanoseconds) by the last one.
 */
final case class TaskReport(
    rank: Int,
    host: String,
    partitions: Int,
    elements: Long,
    bytes: Long,
    nanos: Long,
    waitedForRank: Long,
    waitedForSource: Long)

/** Feeds one rank for the whole run. */
final class PinnedTask(settings: TaskSettings, elements: LongAccumulator, bytes: LongAccumulator) extends Serializable {

  def run(rank: Int, epochs: Iterator[PlannedEpoch]): TaskReport = {
    val context = TaskContext.get()
    val pair = PinnedTask.attach(settings.configFiles, settings.hosts, rank, context.attemptNumber(), settings.timeout)
    context.addTaskCompletionListener[Unit](_ => pair.close())
    val start = System.nanoTime()
    val supply = new PairSupply(pair, settings, elements, bytes)
    epochs.foreach(supply.epoch)
    supply.endOfData()
    TaskReport(rank, PinnedTask.host, supply.partitions, pair.publishedElements, pair.publishedBytes,
      System.nanoTime() - start, pair.waitedNanos, supply.waitedForSource)
  }
}

object PinnedTask {

  /** This executor's host, as Spark knows it. */
  def host: String = SparkEnv.get.blockManager.blockManagerId.host

  /** Attaches to the pair of a rank, after making sure that this is the rank's node. */
  def attach(configFiles: ConfigFiles, hosts: Hosts, rank: Int, attempt: Int, timeout: Double): Pair = {
    val place = hosts.places(rank)
    if (!place.isOn(host)) {
      throw new PlacementException(s"the task of rank $rank landed on $host, but its rank is on ${place.host.mkString}: " +
        "is there an executor with a free core on that node?")
    }
    val pairs = configFiles.read(hosts.places.count(_.host == place.host))
    val paths: PairPaths = pairs(place.localRank)
    val pair = Pair.attach(s"pair of rank $rank", paths, attempt, timeout)
    if (pair.rank >= 0 && pair.rank != rank) {
      try throw new PlacementException(s"${pair.name} belongs to MPI rank ${pair.rank}, not $rank: the Supplier's --hosts and " +
          s"mpirun's host file must name the same nodes in the same order (${InetAddress.getLocalHost.getHostName})")
      finally pair.close()
    }
    pair
  }
}
