package supply.results

import java.nio.ByteBuffer
import java.nio.file.Path

import scala.util.Try

import supply.core.ContractException
import supply.pair.BlockFileFields
import supply.protocol.Layout.{Constant, MappedFileHeader => At}
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
    val fields = BlockFileFields.read(bytes, Constant.FILE_USE_RESULT, refuse(path))
    import fields.{blockBytes, blocks, elements, fileBytes}
    if (!fields.isSealed) refuse(path)("sealed", bytes.getInt(At.`sealed`))
    if (elements < blocks || (elements > 0 && blocks == 0)) refuse(path)("epoch_elements", elements)
    val end = Constant.RING_OFFSET + blocks * blockBytes.toLong
    if (fileBytes > end || (blocks > 0 && fileBytes <= end - blockBytes) || (blocks == 0 && fileBytes != end))
      refuse(path)("file_bytes", s"$fileBytes (with $blocks blocks of $blockBytes)")
    requireWhole(path, fileBytes, fileSize)
    requireTypes(path, fields.schema)
    BlockFileHeader(fields.generation, fields.rank, fields.run, fileBytes, blockBytes, blocks,
      elements, fields.schema)
  }

  private def refuse(path: Path)(field: String, value: Any): Nothing =
    throw new ContractException(field match {
      case "magic" => s"$path is not a block file of a rank (its magic is $value)"
      case "version" =>
        s"$path has version $value, and this Spark reads ${Layout.versionText(Layout.version)}: " +
          "build both sides from one release"
      case "byte_order" =>
        s"$path: the header's byte_order is $value: it is from a machine with another byte order"
      case _ =>
        s"$path: the header's $field is $value, which proto/PROTOCOL.md does not allow"
    })

  /** Refuses a file that was cut after it was sealed. */
  private[results] def requireWhole(path: Path, fileBytes: Long, fileSize: Long): Unit =
    if (fileSize < fileBytes)
      throw new ContractException(
        s"$path was cut after it was sealed: it has $fileSize bytes, and its header's file_bytes is $fileBytes")

  /** Refuses a file that is no block file of this major version and byte order. */
  private[results] def requireKnown(path: Path, bytes: ByteBuffer): Unit =
    BlockFileFields.requireKnown(bytes, refuse(path))

  /** Whether the rank has written its magic, right or wrong: from then on it holds its lock. */
  private[results] def hasMagic(bytes: ByteBuffer): Boolean =
    BlockFileFields.magicOf(bytes).exists(_ != 0)

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
