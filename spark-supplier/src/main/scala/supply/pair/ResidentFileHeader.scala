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
    val bytes = BlockFileFields.bytes(channel, 0, Constant.RING_OFFSET)
    val fields = BlockFileFields.read(bytes, Constant.FILE_USE_RESIDENT, refuse(_, _))
    if (fields.isSealed && fields.fileBytes != channel.size())
      refuse("file_bytes", s"${fields.fileBytes} (the file has ${channel.size()})")
    ResidentFileHeader(fields.generation, bytes.getLong(At.plan), fields.run, fields.rank,
      bytes.getInt(At.localRank), bytes.getInt(At.taskPid), fields.blockBytes, fields.schema,
      bytes.getLong(At.residentFirst), fields.blocks, fields.elements, fields.fileBytes,
      fields.isSealed)
  }

  /** Of any file; 0 if it ends before that field. */
  def runOf(channel: FileChannel): Long =
    BlockFileFields.bytes(channel, 0, At.SIZE).getLong(At.run)
}
