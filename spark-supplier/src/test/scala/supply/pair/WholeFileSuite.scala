package supply.pair

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.FileChannel
import java.nio.file.Paths
import java.nio.file.StandardOpenOption.WRITE

import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ContractException, CutFileException, SourceException}
import supply.protocol.Layout.{Constant, MappedFileHeader => At}
import supply.testing.TestRank

/** What uses a mapped file that a program has cut. */
class WholeFileSuite extends AnyFunSuite with PairWithRank {
  private def cut(rank: TestRank, bytes: Long): Unit = {
    val channel = FileChannel.open(Paths.get(rank.paths.mappedFile), WRITE)
    try channel.truncate(bytes)
    finally channel.close()
    ()
  }

  for (bytes <- Seq(0L, Constant.RING_OFFSET.toLong, Constant.RING_OFFSET + 4096L)) {
    test(s"a task that writes into a file that was cut to $bytes bytes") {
      for (isMapped <- Seq(false, true)) withPair() { (rank, pair) =>
        if (isMapped) supply(pair, Seq(datum(0, 10)))
        val e = intercept[CutFileException](pair.whileWhole {
          cut(rank, bytes)
          supply(pair, (0 until 20).map(datum(_, 2000)))
        })
        assert(e.getMessage.contains(
            s"the mapped file ${rank.paths.mappedFile} was cut from 73728 to $bytes bytes"))
        assert(e.getCause == null)
        FailureSender.send(Seq(rank.paths), run, "no more", 1)(Some(true))
        assert(rank("next").contains("was cut from 73728"))
      }
    }
  }

  test("numbers of the header are those that were checked") {
    withRank { rank =>
      assert(rank.open() == "OK")
      val path = Paths.get(rank.paths.mappedFile)
      def put(at: Int, number: Long): Unit = {
        val channel = FileChannel.open(path, WRITE)
        try channel.write(ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(0, number),
            at.toLong)
        finally channel.close()
        ()
      }
      def refusal(at: Int, wrong: Long, right: Long): String = {
        put(at, wrong)
        Using.resource(MappedFile.open(path).get) { file =>
          put(at, right)
          intercept[ContractException](file.check()).getMessage
        }
      }
      assert(refusal(At.blockBytes, 100, 4096).contains("block_bytes is 100"))
      assert(refusal(At.startElement, -1, 0).contains("start_element"))
      Using.resource(MappedFile.open(path).get)(_.check())
    }
  }

  test("an error of something else stays as it is, and one of other memory has no cause") {
    withPair() { (_, pair) =>
      assert(intercept[SourceException](pair.whileWhole(throw new SourceException("rows")))
        .getMessage == "rows")
      val e = intercept[SourceException](pair.whileWhole(throw new InternalError("a fault")))
      assert(e.getMessage.contains("a file that its task reads was cut") && e.getCause == null)
    }
  }

  test("an interrupted thread keeps the task's lock") {
    withPair() { (rank, pair) =>
      Thread.currentThread().interrupt()
      try assert(pair.whileWhole(7) == 7)
      finally assert(Thread.interrupted())
      supply(pair, Seq(datum(0, 10)))
      assert(rank("next").startsWith("OK"))
    }
  }
}
