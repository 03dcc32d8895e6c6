package supply.pair

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.FileChannel
import java.nio.file.Path

import supply.core.ContractException
import supply.protocol.Layout.{Constant, MappedFileHeader => At}
import supply.protocol.{Layout, Schema}

/**
 * What the header of a resident file says (proto/PROTOCOL.md, "Resident files"). `run`: 0 if the
 * file outlives its run; `first`: sequence number of the first block in the pair for which it was
 * written; `blocks`: those that are whole.
 */
private[pair] final case class ResidentFileHeader(
    generation: Long,
    plan: Long,
    run: Long,
    rank: Int,
    localRank: Int,
    taskPid: Int,
    blockBytes: Int,
    schema: Schema,
    first: Long,
    blocks: Int = 0,
    elements: Long = 0,
    fileBytes: Long = 0,
    isSealed: Boolean = false) {
  def offsetOf(block: Int): Long = Constant.RING_OFFSET + block.toLong * blockBytes

  /** Whether a rank whose own file would have that header can use this one. */
  def hasDataOf(wanted: ResidentFileHeader): Boolean =
    plan == wanted.plan && schema == wanted.schema &&
      (rank < 0 || wanted.rank < 0 || rank == wanted.rank)

  /** The first RING_OFFSET bytes of the file. */
  def toBytes: ByteBuffer = {
    val to = ByteBuffer.allocate(Constant.RING_OFFSET).order(ByteOrder.LITTLE_ENDIAN)
    to.put(At.magic, Layout.BlockFileMagic)
    to.putInt(At.version, Layout.version)
    to.putInt(At.byteOrder, Constant.BYTE_ORDER_MARK)
    to.putLong(At.generation, generation)
    to.putLong(At.fileBytes, fileBytes)
    to.putLong(At.ringOffset, Constant.RING_OFFSET.toLong)
    to.putLong(At.blockBytes, blockBytes.toLong)
    to.putInt(At.blockCount, if (isSealed) blocks else 0)
    to.putInt(At.rank, rank)
    to.putInt(At.localRank, localRank)
    to.putLong(At.published, blocks.toLong)
    to.putInt(At.taskPid, taskPid)
    to.putLong(At.plan, plan)
    to.putLong(At.residentFirst, first)
    to.putLong(At.run, run)
    to.putLong(At.epochElements, elements)
    to.putInt(At.fileUse, Constant.FILE_USE_RESIDENT)
    to.putInt(At.`sealed`, if (isSealed) Constant.SEALED_COMPLETE else 0)
    schema.write(to)
    to.putInt(At.schemaColumns, schema.columns.size)
  }
}

private[pair] object ResidentFileHeader {
  /** Refuses what this version does not write. */
  def read(path: Path, channel: FileChannel): ResidentFileHeader = {
    def refuse(field: String, value: Any): Nothing =
      throw new ContractException(s"$path is no resident file: its $field is $value: remove it")
    val from = bytes(channel, 0, Constant.RING_OFFSET)
    val magic = new Array[Byte](Layout.BlockFileMagic.length)
    from.get(At.magic, magic)
    if (!magic.sameElements(Layout.BlockFileMagic)) refuse("magic", "wrong")
    if (from.getInt(At.version) >>> 16 != Constant.VERSION_MAJOR)
      refuse("version", Layout.versionText(from.getInt(At.version)))
    if (from.getInt(At.byteOrder) != Constant.BYTE_ORDER_MARK)
      refuse("byte_order", from.getInt(At.byteOrder))
    if (from.getInt(At.fileUse) != Constant.FILE_USE_RESIDENT)
      refuse("file_use", from.getInt(At.fileUse))
    if (!Layout.isBlockBytes(from.getLong(At.blockBytes)))
      refuse("block_bytes", from.getLong(At.blockBytes))
    val blocks = from.getLong(At.published)
    if (blocks < 0 || blocks > Int.MaxValue) refuse("published", blocks)
    if (from.getLong(At.ringOffset) != Constant.RING_OFFSET)
      refuse("ring_offset", from.getLong(At.ringOffset))
    val isSealed = from.getInt(At.`sealed`) == Constant.SEALED_COMPLETE
    if (isSealed && from.getInt(At.blockCount) != blocks)
      refuse("block_count", s"${from.getInt(At.blockCount)}, not $blocks as published")
    if (isSealed && from.getLong(At.fileBytes) != channel.size())
      refuse("file_bytes", s"${from.getLong(At.fileBytes)} (the file has ${channel.size()})")
    ResidentFileHeader(from.getLong(At.generation), from.getLong(At.plan), from.getLong(At.run),
      from.getInt(At.rank), from.getInt(At.localRank), from.getInt(At.taskPid),
      from.getLong(At.blockBytes).toInt, Schema.read(from, from.getInt(At.schemaColumns)),
      from.getLong(At.residentFirst), blocks.toInt, from.getLong(At.epochElements),
      from.getLong(At.fileBytes), isSealed)
  }

  /** Of any file; 0 if it ends before that field. */
  def runOf(channel: FileChannel): Long = bytes(channel, 0, At.SIZE).getLong(At.run)

  /** As many of these bytes as there are; others are 0. */
  def bytes(channel: FileChannel, at: Long, count: Int): ByteBuffer = {
    val buffer = ByteBuffer.allocate(count).order(ByteOrder.LITTLE_ENDIAN)
    while (buffer.hasRemaining && channel.read(buffer, at + buffer.position()) >= 0) {}
    buffer.clear()
  }
}
