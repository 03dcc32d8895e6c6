package supply.results

import java.nio.ByteBuffer
import java.nio.file.Path

import scala.util.Try

import supply.core.ContractException
import supply.protocol.Layout.{Constant, MappedFileHeader => At, SchemaEntry => Entry}
import supply.protocol.{Format, Layout, Schema, Text}
import supply.types.SparkTypes

/**
 * What the header of a sealed block file says, copied once: the file may change later. `run`: that
 * of the rank's pair, or 0.
 */
final case class BlockFileHeader(
    generation: Long,
    rank: Int,
    run: Long,
    fileBytes: Long,
    blockBytes: Int,
    blockCount: Int,
    elements: Long,
    schema: Schema) {
  /** Where that block begins in the file. */
  def blockOffset(index: Int): Long = Constant.RING_OFFSET + index.toLong * blockBytes

  /** The most bytes that this block may have; the last block has exactly these. */
  def spaceOf(index: Int): Long = math.min(blockBytes.toLong, fileBytes - blockOffset(index))
}

object BlockFileHeader {
  /** Of a file whose rank has stored `version`; `bytes`: the first RING_OFFSET of the file. */
  private[results] def read(path: Path, bytes: ByteBuffer, fileSize: Long): BlockFileHeader = {
    def refuse(field: String, value: Any): Nothing =
      throw new ContractException(
        s"$path: the header's $field is $value, which proto/PROTOCOL.md does not allow")
    requireKnown(path, bytes)
    if (bytes.getInt(At.fileUse) != Constant.FILE_USE_RESULT)
      refuse("file_use", bytes.getInt(At.fileUse))
    if (bytes.getInt(At.`sealed`) != Constant.SEALED_COMPLETE)
      refuse("sealed", bytes.getInt(At.`sealed`))
    if (bytes.getLong(At.generation) == 0) refuse("generation", 0)
    if (bytes.getLong(At.ringOffset) != Constant.RING_OFFSET)
      refuse("ring_offset", bytes.getLong(At.ringOffset))
    val blockBytes = bytes.getLong(At.blockBytes)
    if (!Layout.isBlockBytes(blockBytes)) refuse("block_bytes", blockBytes)
    val count = bytes.getInt(At.blockCount)
    if (count < 0) refuse("block_count", Integer.toUnsignedLong(count))
    if (bytes.getLong(At.published) != count)
      refuse("published", s"${bytes.getLong(At.published)} (block_count: $count)")
    val elements = bytes.getLong(At.epochElements)
    if (elements < count || (elements > 0 && count == 0)) refuse("epoch_elements", elements)
    val fileBytes = bytes.getLong(At.fileBytes)
    val end = Constant.RING_OFFSET + count * blockBytes
    if (fileBytes > end || (count > 0 && fileBytes <= end - blockBytes) || (count == 0 && fileBytes != end))
      refuse("file_bytes", s"$fileBytes (with $count blocks of $blockBytes)")
    requireWhole(path, fileBytes, fileSize)
    requireEndOfTexts(path, bytes)
    val schema =
      try Schema.read(bytes, bytes.getInt(At.schemaColumns))
      catch { case e: ContractException => throw new ContractException(s"$path: ${e.getMessage}") }
    requireTypes(path, schema)
    BlockFileHeader(bytes.getLong(At.generation), bytes.getInt(At.rank), bytes.getLong(At.run),
      fileBytes, blockBytes.toInt, count, elements, schema)
  }

  /** Refuses a file that was cut after it was sealed. */
  private[results] def requireWhole(path: Path, fileBytes: Long, fileSize: Long): Unit =
    if (fileSize < fileBytes)
      throw new ContractException(
        s"$path was cut after it was sealed: it has $fileSize bytes, and its header's file_bytes is $fileBytes")

  /** Refuses a file that is no block file of this major version and byte order. */
  private[results] def requireKnown(path: Path, bytes: ByteBuffer): Unit = {
    if (!magicOf(bytes).sameElements(Layout.BlockFileMagic))
      throw new ContractException(s"$path is not a block file of a rank (its magic is wrong)")
    val version = bytes.getInt(At.version)
    if (version >>> 16 != Constant.VERSION_MAJOR)
      throw new ContractException(
        s"$path has version ${Layout.versionText(version)}, and this Spark reads " +
          s"${Layout.versionText(Layout.version)}: build both sides from one release")
    if (bytes.getInt(At.byteOrder) != Constant.BYTE_ORDER_MARK)
      throw new ContractException(
        f"$path: the header's byte_order is 0x${bytes.getInt(At.byteOrder)}%08x: it is from a machine with " +
          "another byte order")
  }

  /** Whether the rank has written its magic, right or wrong: from then on it holds its lock. */
  private[results] def hasMagic(bytes: ByteBuffer): Boolean = magicOf(bytes).exists(_ != 0)

  private def magicOf(bytes: ByteBuffer): Array[Byte] = {
    val magic = new Array[Byte](Layout.BlockFileMagic.length)
    bytes.get(At.magic, magic)
    magic
  }

  private def requireEndOfTexts(path: Path, bytes: ByteBuffer): Unit =
    for (column <- 0 until math.min(bytes.getInt(At.schemaColumns), Constant.SCHEMA_COLUMNS_MAX);
      (field, end) <- Seq("name" -> Entry.format, "format" -> Entry.childFormat,
        "child_format" -> Entry.flags)) {
      if (bytes.get(Constant.SCHEMA_OFFSET + column * Entry.SIZE + end - 1) != 0)
        throw new ContractException(
          s"$path: schema_entry.$field of column $column does not end with a zero byte")
    }

  private def requireTypes(path: Path, schema: Schema): Unit =
    schema.columns.find(column =>
      SparkTypes.typeOf(column).isEmpty || Try(Format.of(column)).isFailure).foreach { column =>
      val child = if (column.childFormat.isEmpty) "" else s" of '${column.childFormat}'"
      throw new ContractException(
        s"$path: column '${column.name}' has the format '${column.format}'$child, which this version does not know")
    }

  /** Why the rank aborted the result. */
  private[results] def rankFailure(bytes: ByteBuffer): String =
    Text.read(bytes, At.rankFailure, Layout.FailureTextBytes)
}
