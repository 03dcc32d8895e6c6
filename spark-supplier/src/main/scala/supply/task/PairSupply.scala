package supply.task

import org.apache.spark.util.LongAccumulator

import supply.{ConfigException, SourceException}
import supply.contract.Layout.Constant
import supply.pair.{BlockWriter, Pair, ResidentBlocks}

/**
 * Supplies one rank over its pair, from the pair's position on.
 *
 * @param elements tells the driver how many elements are published
 * @param bytes    and how many bytes
 */
final class PairSupply(pair: Pair, settings: TaskSettings, elements: LongAccumulator, bytes: LongAccumulator) {
  pair.planIs(settings.plan)
  val writer = new BlockWriter(pair, settings.schema, settings.mainColumn, settings.blockElements)
  private val start = pair.position
  private var countedElements = pair.publishedElements
  private var countedBytes = pair.publishedBytes
  var partitions = 0
  var waitedForSource = 0L

  def epoch(planned: PlannedEpoch): Unit = if (planned.epoch >= start.epoch) {
    val inside = start.inside.filter(_ => planned.epoch == start.epoch)
    pair.resident match {
      case Some(blocks) => repeat(planned, blocks, inside)
      case None =>
        if (settings.resident && !isRestOfEpoch(planned.epoch)) pair.letStay(planned.epoch)
        try write(planned, inside)
        catch { case Pair.NoRoomToStay => throw RingNeed.exception(pair, settings, planned) }
    }
  }

  /** Whether the rank has come with a position in that epoch, and gets only what follows it. */
  private def isRestOfEpoch(epoch: Int): Boolean = pair.start.inside.isDefined && epoch == pair.start.epoch

  /** Notifies the blocks that stay again, in the order of this epoch. */
  private def repeat(planned: PlannedEpoch, blocks: ResidentBlocks, inside: Option[(Int, Long)]): Unit = {
    val rest = inside.fold(planned.partitions) { case (index, _) => planned.partitions.dropWhile(_.index != index) }
    rest.foreach { partition =>
      val done = inside.collect { case (partition.index, n) => n }.getOrElse(0L)
      blocks.of(partition.index).filter(_.firstElement >= done).foreach(pair.publishAgain(_, planned.epoch))
      count()
      partitions += 1
    }
    pair.publishAgain(blocks.endOfEpoch, planned.epoch)
  }

  private def write(planned: PlannedEpoch, inside: Option[(Int, Long)]): Unit = {
    inside match {
      case Some((partition, done)) => resume(planned, partition, done)
      case None => planned.partitions.foreach(supply(planned.epoch, _, 0))
    }
    pair.publish(Constant.NOTIFICATION_END_OF_EPOCH, planned.epoch, 0, 0, 0, 0, BlockWriter.ControlBytes)
  }

  private def resume(planned: PlannedEpoch, partition: Int, done: Long): Unit = {
    val rest = planned.partitions.dropWhile(_.index != partition)
    if (rest.isEmpty) {
      throw new ConfigException(s"${pair.name}: the rank wants to go on in partition $partition, which is not its own: " +
        "was its position saved by another rank?")
    }
    val first = rest.next()
    if (done > 0 && !first.isOrdered) {
      throw new SourceException(s"${pair.name}: can not go on behind element $done of partition $partition: Spark computes its rows in no certain " +
        "order (they come out of a shuffle): start over, or write the data to files first, and supply these")
    }
    supply(planned.epoch, first, done)
    rest.foreach(supply(planned.epoch, _, 0))
  }

  /** Supplies a partition but for its first `done` elements. */
  private def supply(epoch: Int, partition: PlannedPartition, done: Long): Unit =
    try supplyElements(epoch, partition, done)
    catch { case e: OutOfMemoryError => throw HeapNeed.exception(pair, partition.index, e) }

  private def supplyElements(epoch: Int, partition: PlannedPartition, done: Long): Unit = {
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

  /** Returns when the rank has released everything. */
  def endOfData(): Unit = {
    if (!pair.isAtEnd) {
      pair.publish(Constant.NOTIFICATION_END_OF_DATA, 0, 0, 0, 0, 0, BlockWriter.ControlBytes)
    }
    pair.awaitAllReleased()
  }
}
