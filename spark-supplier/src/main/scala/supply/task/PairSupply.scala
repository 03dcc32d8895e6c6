package supply.task

import org.apache.spark.util.LongAccumulator

import supply.contract.Notification
import supply.contract.Layout.Constant
import supply.pair.{BlockWriter, Pair}

/**
 * Supplies one rank over its pair, going on behind what an earlier attempt has published.
 *
 * @param elements tells the driver how many elements are published
 * @param bytes    and how many bytes
 */
final class PairSupply(pair: Pair, settings: TaskSettings, elements: LongAccumulator, bytes: LongAccumulator) {
  val writer = new BlockWriter(pair, settings.schema, settings.mainColumn, settings.blockElements)
  private val last: Option[Notification] = pair.lastPublished
  private var countedElements = pair.publishedElements
  private var countedBytes = pair.publishedBytes
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
    elements.add(pair.publishedElements - countedElements)
    bytes.add(pair.publishedBytes - countedBytes)
    countedElements = pair.publishedElements
    countedBytes = pair.publishedBytes
  }

  def endOfData(): Unit = {
    if (!last.exists(_.kind == Constant.NOTIFICATION_END_OF_DATA)) {
      pair.publish(Constant.NOTIFICATION_END_OF_DATA, 0, 0, 0, 0, 0, BlockWriter.ControlBytes)
    }
    pair.awaitAllReleased()
  }
}
