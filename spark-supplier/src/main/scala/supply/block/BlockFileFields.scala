package supply.block

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.FileChannel

import supply.core.ContractException
import supply.protocol.{Layout, Schema}
import supply.protocol.Layout.{Constant, MappedFileHeader => At}

/**
 * What the headers of results and of resident files have in common (proto/PROTOCOL.md, "Block
 * files"). `blocks`: those that are whole.
 */
private[supply] final case class BlockFileFields(
    generation: Long,
    run: Long,
    rank: Int,
    blockBytes: Int,
    blocks: Int,
    elements: Long,
    fileBytes: Long,
    isSealed: Boolean,
    schema: Schema)

private[supply] object BlockFileFields {
  /** Throws an error that names a field and what its value is. */
  type Refuse = (String, Any) => Nothing

  /** `bytes`: what [[headerOf]] returns; `use`: what the file must be for. */
  def read(bytes: ByteBuffer, use: Int, refuse: Refuse): BlockFileFields = {
    requireKnown(bytes, refuse)
    if (bytes.getInt(At.fileUse) != use) refuse("file_use", bytes.getInt(At.fileUse))
    if (bytes.getLong(At.generation) == 0) refuse("generation", 0)
    if (bytes.getLong(At.ringOffset) != Schema.blockFileRingOffset(bytes.getInt(At.schemaBytes)))
      refuse("ring_offset", bytes.getLong(At.ringOffset))
    val blockBytes = bytes.getLong(At.blockBytes)
    if (!Layout.isBlockBytes(blockBytes)) refuse("block_bytes", blockBytes)
    val blocks = bytes.getLong(At.published)
    if (blocks < 0 || blocks > Int.MaxValue) refuse("published", blocks)
    val isSealed = bytes.getInt(At.`sealed`) == Constant.SEALED_COMPLETE
    if (isSealed && bytes.getInt(At.blockCount) != blocks)
      refuse("block_count", s"${bytes.getInt(At.blockCount)} (published: $blocks)")
    BlockFileFields(bytes.getLong(At.generation), bytes.getLong(At.run), bytes.getInt(At.rank),
      blockBytes.toInt, blocks.toInt, bytes.getLong(At.epochElements), bytes.getLong(At.fileBytes),
      isSealed, schemaOf(bytes, refuse))
  }

  /** Refuses a file that is no block file of this version and byte order. */
  def requireKnown(bytes: ByteBuffer, refuse: Refuse): Unit = {
    if (!magicOf(bytes).sameElements(Layout.BlockFileMagic)) refuse("magic", "wrong")
    val version = bytes.getInt(At.version)
    if (version != Layout.version) refuse("version", Layout.versionText(version))
    if (bytes.getInt(At.byteOrder) != Constant.BYTE_ORDER_MARK)
      refuse("byte_order", f"0x${bytes.getInt(At.byteOrder)}%08x")
  }

  def magicOf(bytes: ByteBuffer): Array[Byte] = {
    val magic = new Array[Byte](Layout.BlockFileMagic.length)
    bytes.get(At.magic, magic)
    magic
  }

  private def schemaOf(bytes: ByteBuffer, refuse: Refuse): Schema =
    try Schema.read(bytes, bytes.getInt(At.schemaColumns),
        wide =>
          bytes.slice(Constant.RING_OFFSET, math.min(wide, bytes.limit() - Constant.RING_OFFSET)))
    catch { case e: ContractException => refuse("schema", s"wrong (${e.getMessage})") }

  /** The first RING_OFFSET bytes of a block file, and after them its schema, if that is wide. */
  def headerOf(channel: FileChannel): ByteBuffer = {
    val header = bytes(channel, 0, Constant.RING_OFFSET)
    val wide = header.getInt(At.schemaBytes)
    if (wide <= 0 || wide > math.min(Constant.SCHEMA_BYTES_MAX.toLong, channel.size())) header
    else bytes(channel, 0, Constant.RING_OFFSET + wide)
  }

  /** As many of these bytes of the file as there are; others are 0. */
  def bytes(channel: FileChannel, at: Long, count: Int): ByteBuffer = {
    val buffer = ByteBuffer.allocate(count).order(ByteOrder.LITTLE_ENDIAN)
    while (buffer.hasRemaining && channel.read(buffer, at + buffer.position()) >= 0) {}
    buffer.clear()
  }
}
