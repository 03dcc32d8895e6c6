package supply.pair

import supply.core.ContractException
import supply.protocol.Notification
import supply.protocol.Layout.{BlockHeader, Constant}

/**
 * Which number is published in which slot, by the copy of the notification in the block's header,
 * or for a replayed block by its record (proto/PROTOCOL.md, "Resident epochs").
 */
private[supply] final class PublishedBlocks(name: String, file: MappedFile) {
  import PublishedBlocks.EndSlots

  private val residentMax = file.blockCount - EndSlots

  /** Number of the first block of the epoch that becomes resident; -1: the current one does not. */
  private var residentFrom = -1L

  /** The number after the resident blocks. It and all later ones have no blocks of their own. */
  private var afterResident = Long.MaxValue
  private var found = Option.empty[ResidentBlocks]

  /** A block gets the slot of this number: its own, except END_OF_DATA after resident blocks. */
  def place(number: Long): Long = math.min(number, afterResident)

  def slotOf(number: Long): Int = (number % file.blockCount).toInt

  /** The notification of a published number. */
  def notification(number: Long): Notification = {
    val record = file.slot(slotOf(number))
    if (isRecorded(number)) {
      val block = record.getLong(BlockHeader.replayBlock)
      if (block < 0 || block >= number)
        throw new ContractException(s"$name: block $number is recorded as a replay of block $block")
      read(block, number).copy(sequence = number, epoch = record.getInt(BlockHeader.replayEpoch))
    } else read(number, number)
  }

  /** Bytes of values to which that block refers. One of a resident file refers to none. */
  def referencedBytes(block: Notification): Long = if (block.file != 0) 0
  else {
    val index = ((block.offset - file.ringOffset) / file.blockBytes).toInt
    Integer.toUnsignedLong(file.slot(index).getInt(BlockHeader.referencedBytes))
  }

  /** Elements in all blocks before that number, and the bytes of these blocks. */
  def totalsBefore(number: Long): (Long, Long) = {
    val slot = file.slot(slotOf(number))
    if (isRecorded(number))
      slot.getLong(BlockHeader.replayElementsBefore) -> slot.getLong(BlockHeader.replayBytesBefore)
    else slot.getLong(BlockHeader.elementsBefore) -> slot.getLong(BlockHeader.bytesBefore)
  }

  /** Records that `number`, the next to be published, replays the block of another number. */
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

  /** Keeps an epoch resident; blocks in front of number `next` come from an earlier attempt. */
  def beginResident(epoch: Int, next: Long): Unit = {
    def isOfEpoch(number: Long) = {
      val block = notification(number)
      block.kind == Constant.NOTIFICATION_BLOCK && block.epoch == epoch
    }
    residentFrom = next
    while (residentFrom > 0 && next - residentFrom < residentMax && isOfEpoch(residentFrom - 1))
      residentFrom -= 1
  }

  /** Whether a block with elements may be published under the number `next`. */
  def hasRoom(next: Long): Boolean = residentFrom < 0 || next - residentFrom < residentMax

  /** If the epoch becomes resident, notes its blocks; `end` is the number of its END_OF_EPOCH. */
  def sealResident(end: Long): Unit = if (residentFrom >= 0) {
    file.setResident(residentFrom, end - residentFrom + 1)
    residentFrom = -1
  }

  /** Finds the resident blocks, if all of them are below `published`. */
  def findResident(published: Long): Unit = {
    val (first, count) = file.resident
    if (count < 0 || count >= file.blockCount || first < 0 || first > published)
      throw new ContractException(
        s"$name: the header's resident_first is $first and its resident_count $count, with " +
          s"$published blocks published in a ring of ${file.blockCount}")
    if (found.isEmpty && count > 0 && first + count <= published) {
      afterResident = first + count
      found =
        Some(new ResidentBlocks((first until afterResident).map(number => read(number, number))))
    }
  }

  def resident: Option[ResidentBlocks] = found

  /** A record's number is never 0: it comes after a resident block. */
  private def isRecorded(number: Long): Boolean =
    number > 0 && file.slot(slotOf(number)).getLong(BlockHeader.replaySequence) == number

  /** The copy in the slot of `block`, which is published under `number`. */
  private def read(block: Long, number: Long): Notification = {
    val copy = Notification.read(file.slot(slotOf(block)), BlockHeader.notification)
    if (copy.sequence != block && copy.sequence != number || copy.generation != file.generation)
      throw new ContractException(s"$name: the slot of block $block holds block ${copy.sequence}")
    val place = copy.offset - file.ringOffset
    if (copy.kind == Constant.NOTIFICATION_BLOCK && copy.file == 0 &&
      (place < 0 || place >= file.blockCount.toLong * file.blockBytes))
      throw new ContractException(
        s"$name: block $block is recorded at offset ${copy.offset}, which is in no slot")
    copy
  }
}

private[supply] object PublishedBlocks {
  /** Slots for END_OF_EPOCH and END_OF_DATA, in addition to the resident blocks with elements. */
  final val EndSlots = 2
}

/** The blocks of an epoch, END_OF_EPOCH last, that stay in their slots for later epochs. */
private[supply] final class ResidentBlocks(blocks: IndexedSeq[Notification]) {
  private val byPartition =
    blocks.filter(_.kind == Constant.NOTIFICATION_BLOCK).groupBy(_.partition)

  /** The blocks of a partition, in the order of its elements. */
  def of(partition: Int): IndexedSeq[Notification] =
    byPartition.getOrElse(partition, IndexedSeq.empty)

  def endOfEpoch: Notification = blocks.last
}
