package supply.run

import java.nio.channels.FileChannel
import java.nio.file.{Path, Paths}
import java.nio.file.StandardOpenOption.WRITE

import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumSource
import supply.protocol.Layout.Constant

/** A program cuts the mapped file of a pair: that fails, with one text, and this JVM stays. */
class CutFileSuite extends AnyFunSuite with RunsWithRanks {
  import CutFileSuite._

  // All of the file, all of the ring, and the end of the ring.
  private val left = Seq(0L, Constant.RING_OFFSET.toLong, Constant.RING_OFFSET + 4096L)

  for (bytes <- left) test(s"a file that is cut to $bytes bytes in the middle of a run") {
    val rdd = sc.parallelize(0 until 400, 4).map { i =>
      // The ranks have then read everything, and wait.
      if (i == 50) {
        Thread.sleep(500)
        cut(file, bytes)
      }
      // The other rank still waits.
      if (i % 100 == 99) Thread.sleep(1500)
      SupplyJobSuite.tuple(i)
    }
    val (seen, outcome) = supply(2,
      more = { settings =>
        file = Paths.get(settings.mappedFiles).resolveSibling("pair-0")
        settings
      })(new DatumSource(rdd))
    val text = outcome.swap.toOption.get.getMessage
    assert(text.contains(s"the mapped file $file was cut from ") &&
      text.contains(s"to $bytes bytes"))
    seen.foreach(of => assert(of.last.contains(s"the mapped file $file was cut from "), of.last))
    assert(sc.range(0, 10).count() == 10)
  }
}

private object CutFileSuite {
  @volatile var file: Path = _

  def cut(file: Path, bytes: Long): Unit = {
    val channel = FileChannel.open(file, WRITE)
    try channel.truncate(bytes)
    finally channel.close()
    ()
  }
}
