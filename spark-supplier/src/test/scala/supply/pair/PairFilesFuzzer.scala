package supply.pair

import java.nio.channels.FileChannel
import java.nio.file.Path
import java.nio.file.StandardOpenOption.READ

import scala.util.Using

import supply.block.{ResidentFileBlocks, ResidentFileHeader}
import supply.protocol.Layout.Constant.NOTIFICATION_BLOCK
import supply.testing.Fuzzed

/** A mapped file and a resident file that a rank, or a run of another version, has left. */
object PairFilesFuzzer {
  def fuzzerTestOneInput(input: Array[Byte]): Unit = {
    val path = Fuzzed.file("fuzzed.mapped", input)
    Fuzzed.refusedOrRead(MappedFile.open(path).foreach(Using.resource(_)(readHeader)))
    Fuzzed.refusedOrRead(readBlocks(path))
  }

  /** As a task does that attaches, and continues where the last one has stopped. */
  private def readHeader(file: MappedFile): Unit = {
    file.check()
    Seq[Any](file.start, file.startPlan, file.plan, file.resident, file.acknowledged, file.run)
    val blocks = new PublishedBlocks("the pair", file)
    (file.released until file.published).map(blocks.notification)
      .filter(_.kind == NOTIFICATION_BLOCK).foreach(blocks.referencedBytes)
    blocks.findResident(file.published)
  }

  private def readBlocks(path: Path): Unit =
    Using.resource(FileChannel.open(path, READ)) { channel =>
      val header = ResidentFileHeader.read(path, channel)
      ResidentFileBlocks.end(header, ResidentFileBlocks.read(path, channel, header, header.blocks))
    }
}
