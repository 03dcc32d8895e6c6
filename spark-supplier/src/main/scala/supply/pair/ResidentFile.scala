package supply.pair

import java.nio.file.{NoSuchFileException, Path}
import java.nio.file.StandardOpenOption.READ

import scala.util.Using

import supply.core.ContractException
import supply.data.ForeignFile
import supply.protocol.Notification

/** A sealed resident file: the blocks of an epoch, which later epochs publish by reference. */
final class ResidentFile private[pair] (
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

object ResidentFile {
  /**
   * The sealed file of that name with the data of `wanted`; None: there is none, or it belongs to
   * another run.
   */
  private[pair] def find(
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
            if (header.fileBytes != ResidentFileBlocks.end(blocks))
              throw new ContractException(
                s"$path: its file_bytes is ${header.fileBytes}, and its last block ends at " +
                  s"${ResidentFileBlocks.end(blocks)}: remove the file")
            Some(new ResidentFile(foreign(path), blocks))
          }
        }
      }
    catch { case _: NoSuchFileException => None }

  /** The run of a file, whatever else it holds; None: there is no such file. */
  private[pair] def runOf(path: Path, group: Option[String]): Option[Long] =
    try Using.resource(PairFile.find(path, PairFile.Blocks, group)) { file =>
        Some(Using.resource(file.open(READ))(ResidentFileHeader.runOf))
      }
    catch { case _: NoSuchFileException => None }

  private[pair] def foreign(path: Path): ForeignFile = ForeignFile.find(path.toString,
    "be used as a resident file (--resident-folder)")
}
