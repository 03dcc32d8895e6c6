package supply.block

import java.nio.channels.FileChannel
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.StandardOpenOption.READ
import java.nio.file.{Files, NoSuchFileException, Path, Paths}
import java.nio.{ByteBuffer, ByteOrder}

import scala.util.Using

import supply.core.ContractException
import supply.pair.{Pair, PairFile, PairPaths}
import supply.protocol.{Layout, Notification, Schema}
import supply.protocol.Layout.{BlockHeader, Constant, MappedFileHeader => At}
import supply.source.ForeignFile

/** A sealed resident file: the blocks of an epoch, which later epochs publish by reference. */
private[supply] final class ResidentFile private[block] (
    val foreign: ForeignFile, blocks: IndexedSeq[Notification]) {
  private val byPartition = blocks.groupBy(_.partition)

  /**
   * The blocks of a partition from that element on, in the order of its elements. None: the element
   * lies within a block.
   */
  def from(partition: Int, element: Long): Option[IndexedSeq[Notification]] = {
    val all = byPartition.getOrElse(partition, IndexedSeq.empty)
    val rest = all.dropWhile(_.firstElement < element)
    val isWithin = all.lift(all.size - rest.size - 1).exists(block =>
      block.firstElement + block.elementCount > element)
    if (isWithin) None else Some(rest)
  }
}

private[supply] object ResidentFile {
  /**
   * The sealed file of that name with the data of `wanted`; None: there is none, or it belongs to
   * another run.
   */
  private[block] def find(
      path: Path, group: Option[String], wanted: ResidentFileHeader): Option[ResidentFile] =
    try Using.resource(PairFile.find(path, PairFile.Blocks, group)) { file =>
        Using.resource(file.open(READ)) { channel =>
          val header = ResidentFileHeader.read(path, channel)
          if (header.run != wanted.run) None
          else {
            if (!header.isSealed || !header.hasDataOf(wanted))
              throw new ContractException(
                s"$path has other data than its name says, or is not whole: remove it")
            val blocks = ResidentFileBlocks.read(path, channel, header, header.blocks)
            if (header.fileBytes != ResidentFileBlocks.end(header, blocks))
              throw new ContractException(
                s"$path: its file_bytes is ${header.fileBytes}, and its last block ends at " +
                  s"${ResidentFileBlocks.end(header, blocks)}: remove the file")
            Some(new ResidentFile(foreign(path), blocks))
          }
        }
      }
    catch { case _: NoSuchFileException => None }

  /** The run of a file, whatever else it holds; None: there is no such file. */
  private[block] def runOf(path: Path, group: Option[String]): Option[Long] =
    try Using.resource(PairFile.find(path, PairFile.Blocks, group)) { file =>
        Some(Using.resource(file.open(READ))(ResidentFileHeader.runOf))
      }
    catch { case _: NoSuchFileException => None }

  private[block] def foreign(path: Path): ForeignFile = ForeignFile.find(path.toString,
    "be used as a resident file (--resident-folder)")
}

/**
 * What the header of a resident file says (proto/PROTOCOL.md, "Resident files"). `run`: 0 if the
 * file outlives its run; `first`: sequence number of the first block in the pair for which it was
 * written; `blocks`: those that are whole.
 */
private[supply] final case class ResidentFileHeader(
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
  def offsetOf(block: Int): Long = schema.blockFileRingOffset + block.toLong * blockBytes

  /** Whether a rank whose own file would have that header can use this one. */
  def hasDataOf(wanted: ResidentFileHeader): Boolean =
    plan == wanted.plan && schema == wanted.schema &&
      (rank < 0 || wanted.rank < 0 || rank == wanted.rank)

  /** The bytes in front of the first block. */
  def toBytes: ByteBuffer = {
    val ringOffset = schema.blockFileRingOffset
    val to = ByteBuffer.allocate(ringOffset.toInt).order(ByteOrder.LITTLE_ENDIAN)
    to.put(At.magic, Layout.BlockFileMagic)
    to.putInt(At.version, Layout.version)
    to.putInt(At.byteOrder, Constant.BYTE_ORDER_MARK)
    to.putLong(At.generation, generation)
    to.putLong(At.fileBytes, fileBytes)
    to.putLong(At.ringOffset, ringOffset)
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
    schema.writeHeader(to)
    if (schema.isWide) to.put(Constant.RING_OFFSET, schema.toBytes.array)
    to.putInt(At.schemaColumns, schema.entries.size)
  }
}

private[supply] object ResidentFileHeader {
  /** What a file that begins with the pair's next block says of the pair. `run`: 0 if it outlives its run. */
  def of(pair: Pair, schema: Schema, run: Long): ResidentFileHeader = {
    import pair.file
    ResidentFileHeader(file.generation, file.plan, run, file.rank, file.localRank, file.taskPid,
      file.blockBytes, schema, first = file.published)
  }

  /** Refuses what this version does not write. */
  def read(path: Path, channel: FileChannel): ResidentFileHeader = {
    def refuse(field: String, value: Any): Nothing =
      throw new ContractException(s"$path is no resident file: its $field is $value: remove it")
    val bytes = BlockFileFields.headerOf(channel)
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

/** Finds the blocks of a resident file by their own headers. */
private[supply] object ResidentFileBlocks {
  /** The first `count` blocks. */
  def read(path: Path, channel: FileChannel, header: ResidentFileHeader, count: Int)
      : IndexedSeq[Notification] = (0 until count).map { k =>
    val at = header.offsetOf(k)
    val block = Notification.read(
      BlockFileFields.bytes(channel, at, BlockHeader.SIZE), BlockHeader.notification)
    if (!isBlock(block, header, k))
      throw new ContractException(s"$path: block $k is not what its header says: remove the file")
    block
  }

  /** Where a file of these blocks ends. */
  def end(header: ResidentFileHeader, blocks: IndexedSeq[Notification]): Long =
    blocks.lastOption.fold(header.offsetOf(0))(last => last.offset + last.size)

  private def isBlock(block: Notification, header: ResidentFileHeader, k: Int): Boolean =
    block.generation == header.generation && block.kind == Constant.NOTIFICATION_BLOCK &&
      block.sequence == k && block.epoch == 0 && block.offset == header.offsetOf(
        k) && block.file == 0 &&
      block.elementCount > 0 && block.firstElement >= 0 &&
      block.size >= BlockHeader.SIZE && block.size <= header.blockBytes
}

/**
 * The names of a rank's resident file (proto/PROTOCOL.md, "Resident files"). `kept`: the name, in
 * the same folder, of a file that outlives its run.
 */
private[supply] final case class ResidentFileNames(folder: Path, pair: PairPaths,
    kept: Option[String] = None) {
  // Pairs of other folders may have mapped files with the same name.
  private val own =
    f"${Paths.get(pair.mappedFile).getFileName}.${ResidentFileNames.hash(pair.mappedFile)}%016x"

  /** The sealed file of this run alone. */
  val ofRun: Path = folder.resolve(s"$own.resident")

  /** The file until it is sealed. */
  val unsealed: Path = folder.resolve(s"$own.resident.unsealed")

  val whenSealed: Path = kept.fold(ofRun)(folder.resolve(_))

  def group: Option[String] = pair.group

  /** Removes what belongs to that run alone. */
  def remove(run: Long): Unit = Seq(unsealed, ofRun).foreach { path =>
    if (ResidentFile.runOf(path, group).exists(Seq(0, run).contains)) Files.deleteIfExists(path)
  }
}

private[supply] object ResidentFileNames {
  private final val OffsetBasis = 0xcbf29ce484222325L
  private final val Prime = 0x100000001b3L

  /** FNV-1a of 64 bits, of the path's UTF-8. */
  private[block] def hash(path: String): Long =
    path.getBytes(UTF_8).foldLeft(OffsetBasis)((hash, byte) => (hash ^ (byte & 0xff)) * Prime)
}
