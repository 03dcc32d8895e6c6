package supply.pair

import java.nio.channels.FileChannel
import java.nio.file.Path
import java.nio.file.StandardOpenOption.READ

import scala.util.Using

import supply.block.{ResidentFileBlocks, ResidentFileHeader}
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
    Seq[Any](file.start, file.startPlan, file.plan, file.acknowledged, file.run)
    (file.released until file.published).foreach(file.notification)
  }

  private def readBlocks(path: Path): Unit =
    Using.resource(FileChannel.open(path, READ)) { channel =>
      val header = ResidentFileHeader.read(path, channel)
      ResidentFileBlocks.end(header, ResidentFileBlocks.read(path, channel, header, header.blocks))
    }
}
