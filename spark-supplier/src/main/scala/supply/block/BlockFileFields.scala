package supply.block

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.FileChannel

import supply.core.ContractException
import supply.protocol.{Layout, Schema}
import supply.protocol.Layout.{Constant, MappedFileHeader => At, SchemaEntry => Entry}

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

  /** `bytes`: the first RING_OFFSET of the file; `use`: what the file must be for. */
  def read(bytes: ByteBuffer, use: Int, refuse: Refuse): BlockFileFields = {
    requireKnown(bytes, refuse)
    if (bytes.getInt(At.fileUse) != use) refuse("file_use", bytes.getInt(At.fileUse))
    if (bytes.getLong(At.generation) == 0) refuse("generation", 0)
    if (bytes.getLong(At.ringOffset) != Constant.RING_OFFSET)
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

  /** Refuses a file that is no block file of this major version and byte order. */
  def requireKnown(bytes: ByteBuffer, refuse: Refuse): Unit = {
    if (!magicOf(bytes).sameElements(Layout.BlockFileMagic)) refuse("magic", "wrong")
    val version = bytes.getInt(At.version)
    if (version >>> 16 != Constant.VERSION_MAJOR) refuse("version", Layout.versionText(version))
    if (bytes.getInt(At.byteOrder) != Constant.BYTE_ORDER_MARK)
      refuse("byte_order", f"0x${bytes.getInt(At.byteOrder)}%08x")
  }

  def magicOf(bytes: ByteBuffer): Array[Byte] = {
    val magic = new Array[Byte](Layout.BlockFileMagic.length)
    bytes.get(At.magic, magic)
    magic
  }

  private def schemaOf(bytes: ByteBuffer, refuse: Refuse): Schema = {
    val entries = bytes.getInt(At.schemaColumns)
    for (column <- 0 until math.min(entries, Constant.SCHEMA_COLUMNS_MAX);
      (field, end) <- Seq("name" -> Entry.format, "format" -> Entry.childFormat,
        "child_format" -> Entry.flags)) {
      if (bytes.get(Constant.SCHEMA_OFFSET + column * Entry.SIZE + end - 1) != 0)
        refuse(s"schema_entry.$field of column $column", "a text without a zero byte at its end")
    }
    try Schema.read(bytes, entries)
    catch { case e: ContractException => refuse("schema", s"wrong (${e.getMessage})") }
  }

  /** As many of these bytes of the file as there are; others are 0. */
  def bytes(channel: FileChannel, at: Long, count: Int): ByteBuffer = {
    val buffer = ByteBuffer.allocate(count).order(ByteOrder.LITTLE_ENDIAN)
    while (buffer.hasRemaining && channel.read(buffer, at + buffer.position()) >= 0) {}
    buffer.clear()
  }
}
