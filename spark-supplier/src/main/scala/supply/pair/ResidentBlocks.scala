package supply.pair

import supply.protocol.Layout.Constant
import supply.protocol.Notification

/** The blocks of an epoch, END_OF_EPOCH last, that stay in their slots for later epochs. */
final class ResidentBlocks(blocks: IndexedSeq[Notification]) {
  private val byPartition =
    blocks.filter(_.kind == Constant.NOTIFICATION_BLOCK).groupBy(_.partition)

  /** The blocks of a partition, in the order of its elements. */
  def of(partition: Int): IndexedSeq[Notification] =
    byPartition.getOrElse(partition, IndexedSeq.empty)

  def endOfEpoch: Notification = blocks.last
}
