package supply.task

import java.net.InetAddress

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.util.LongAccumulator

import supply.PlacementException
import supply.config.{ConfigFiles, PairPaths}
import supply.contract.{Notification, Schema}
import supply.contract.Layout.Constant
import supply.pair.{BlockWriter, Pair}
import supply.plan.Hosts

/** What all tasks of a run have in common. */
final case class TaskSettings(
    configFiles: ConfigFiles,
    hosts: Hosts,
    schema: Schema,
    mainColumn: Int,
    blockElements: Int,
    timeout: Double)

/** What one task has supplied, of one attempt. Times in nanoseconds, bytes of blocks. */
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
    val supply = new Supply(pair)
    epochs.foreach(supply.epoch)
    supply.endOfData()
    TaskReport(rank, PinnedTask.host, supply.partitions, supply.writer.publishedElements, supply.writer.publishedBytes,
      System.nanoTime() - start, pair.waitedNanos, supply.waitedForSource)
  }

  /** One run over the pair, going on behind what an earlier attempt has published. */
  private final class Supply(pair: Pair) {
    val writer = new BlockWriter(pair, settings.schema, settings.mainColumn, settings.blockElements)
    private val last: Option[Notification] = pair.lastPublished
    private var counted = (0L, 0L)
    var partitions = 0
    var waitedForSource = 0L

    def epoch(planned: PlannedEpoch): Unit = if (!hasEnded(planned.epoch)) {
      val inThisEpoch = last.filter(n => n.epoch == planned.epoch && n.kind == Constant.NOTIFICATION_BLOCK)
      val rest = inThisEpoch match {
        case Some(n) => planned.partitions.dropWhile(_.index != n.partition)
        case None => planned.partitions
      }
      rest.foreach { partition =>
        val done = inThisEpoch.filter(_.partition == partition.index).map(n => n.firstElement + n.elementCount).getOrElse(0L)
        supply(planned.epoch, partition, done)
      }
      pair.publish(Constant.NOTIFICATION_END_OF_EPOCH, planned.epoch, 0, 0, 0, 0, BlockWriter.ControlBytes)
    }

    private def hasEnded(epoch: Int): Boolean = last.exists { n =>
      n.kind == Constant.NOTIFICATION_END_OF_DATA || n.epoch > epoch ||
      n.epoch == epoch && n.kind == Constant.NOTIFICATION_END_OF_EPOCH
    }

    /** Supplies a partition but for its first `done` elements. */
    private def supply(epoch: Int, partition: PlannedPartition, done: Long): Unit = {
      val opening = System.nanoTime()
      val cursor = partition.open()
      waitedForSource += System.nanoTime() - opening
      try {
        val timed = new TimedCursor(cursor)
        var skipped = 0L
        while (skipped < done && timed.next()) skipped += 1
        writer.startAt(epoch, partition.index, done)
        while (timed.next()) {
          writer.append(cursor)
          if (writer.isEmpty) count()
        }
        writer.flush()
        count()
        partitions += 1
        waitedForSource += timed.nanos
      } finally cursor.close()
    }

    /** Tells the driver how far this task is, once a block. */
    private def count(): Unit = {
      elements.add(writer.publishedElements - counted._1)
      bytes.add(writer.publishedBytes - counted._2)
      counted = (writer.publishedElements, writer.publishedBytes)
    }

    def endOfData(): Unit = {
      if (!last.exists(_.kind == Constant.NOTIFICATION_END_OF_DATA)) {
        pair.publish(Constant.NOTIFICATION_END_OF_DATA, 0, 0, 0, 0, 0, BlockWriter.ControlBytes)
      }
      pair.awaitAllReleased()
    }
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
