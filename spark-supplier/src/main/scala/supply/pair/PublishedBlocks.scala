package supply.pair

import supply.core.ContractException
import supply.protocol.Layout.{BlockHeader, Constant}
import supply.protocol.Notification

/**
 * Which number is published in which slot, and what the mapped file itself says of it: by the copy
 * of the notification in the block, or, for a block that has stayed and is notified again, by a
 * record (proto/PROTOCOL.md, "Resident epochs").
 */
private[pair] final class PublishedBlocks(name: String, file: MappedFile) {
  import PublishedBlocks.EndSlots

  /** Number of the first block of the epoch that is to stay; -1 where the current one is not. */
  private var staysFrom = -1L

  /**
   * Number behind the blocks that stay, once their epoch has ended: numbers from this one on have
   * no blocks of their own.
   */
  private var behindResident = Long.MaxValue
  private var found = Option.empty[ResidentBlocks]

  private def mostThatStay: Int = file.blockCount - EndSlots

  /**
   * The number whose slot holds a new block of that number: its own, but for END_OF_DATA behind
   * blocks that stay.
   */
  def place(number: Long): Long = math.min(number, behindResident)

  def slotOf(number: Long): Int = (number % file.blockCount).toInt

  /** Of the notification of a published number. */
  def copyOf(number: Long): Notification = {
    val record = file.slot(slotOf(number))
    if (isRecorded(number)) {
      val block = record.getLong(BlockHeader.replayBlock)
      read(block, number).copy(sequence = number, epoch = record.getInt(BlockHeader.replayEpoch))
    } else read(number, number)
  }

  /** Elements in all blocks before that number, and the bytes of these blocks. */
  def before(number: Long): (Long, Long) = {
    val slot = file.slot(slotOf(number))
    if (isRecorded(number))
      slot.getLong(BlockHeader.replayElementsBefore) -> slot.getLong(BlockHeader.replayBytesBefore)
    else slot.getLong(BlockHeader.elementsBefore) -> slot.getLong(BlockHeader.bytesBefore)
  }

  /** Notes that `number`, the next to be published, stands for the block of another number. */
  def record(
      number: Long, block: Long, epoch: Int, elementsBefore: Long, bytesBefore: Long): Unit = {
    val slot = file.slot(slotOf(number))
    slot.putLong(BlockHeader.replaySequence, number)
    slot.putLong(BlockHeader.replayBlock, block)
    slot.putInt(BlockHeader.replayEpoch, epoch)
    slot.putLong(BlockHeader.replayElementsBefore, elementsBefore)
    slot.putLong(BlockHeader.replayBytesBefore, bytesBefore)
    ()
  }

  /**
   * Lets the blocks of an epoch stay; `next` is the number of the one to be published next, not
   * always the first.
   */
  def beginResident(epoch: Int, next: Long): Unit = {
    def isOfEpoch(number: Long) = {
      val copy = copyOf(number)
      copy.kind == Constant.NOTIFICATION_BLOCK && copy.epoch == epoch
    }
    staysFrom = next
    while (staysFrom > 0 && next - staysFrom < mostThatStay && isOfEpoch(staysFrom - 1))
      staysFrom -= 1
  }

  /** Whether a block with elements may be published under the number `next`. */
  def hasRoom(next: Long): Boolean = staysFrom < 0 || next - staysFrom < mostThatStay

  /**
   * Notes in the header that an epoch stays, if it is to, up to END_OF_EPOCH, which is about to be
   * published.
   */
  def sealResident(end: Long): Unit = if (staysFrom >= 0) {
    file.residentAre(staysFrom, end - staysFrom + 1)
    staysFrom = -1
  }

  /** Looks for blocks that stay among the numbers below `published`. */
  def findResident(published: Long): Unit = {
    val first = file.residentFirst
    val count = file.residentCount
    if (count < 0 || count >= file.blockCount || first < 0 || first > published) {
      throw new ContractException(
        s"$name: the header's resident_first is $first and its resident_count $count, with " +
          s"$published blocks published in a ring of ${file.blockCount}")
    }
    if (found.isEmpty && count > 0 && first + count <= published) {
      behindResident = first + count
      found =
        Some(new ResidentBlocks((first until behindResident).map(number => read(number, number))))
    }
  }

  /** The blocks that stay. */
  def resident: Option[ResidentBlocks] = found

  /** 0 is no number of a record: what stays is numbered from 0 on, at the earliest. */
  private def isRecorded(number: Long): Boolean =
    number > 0 && file.slot(slotOf(number)).getLong(BlockHeader.replaySequence) == number

  /**
   * The copy in the slot of `block`, as it was published under that number; END_OF_DATA has the
   * number that it stands for.
   */
  private def read(block: Long, number: Long): Notification = {
    val copy = Notification.read(file.slot(slotOf(block)), BlockHeader.notification)
    if (copy.sequence != block && copy.sequence != number || copy.generation != file.generation) {
      throw new ContractException(s"$name: the slot of block $block holds block ${copy.sequence}")
    }
    copy
  }
}

private[pair] object PublishedBlocks {

  /** Slots for END_OF_EPOCH and END_OF_DATA withMappedFile the blocks with elements that stay. */
  final val EndSlots = 2
}
