package supply.block

import org.scalatest.funsuite.AnyFunSuite

import supply.core.SourceException
import supply.pair.PairWithRank
import supply.protocol.Layout.{MappedFileHeader => At}
import supply.source.ForeignFile
import supply.testing.TestStream

/** The foreign files of a pair: who may refer to them, and under which number. */
class ForeignFilesSuite extends AnyFunSuite with PairWithRank {
  private def file(path: String, modified: Long = 3): ForeignFile =
    ForeignFile(path, device = 1, inode = 2, bytes = 4096, modifiedNanos = modified)

  test("a file keeps its number, also for the next attempt") {
    withRank { rank =>
      rank.open()
      attached(rank) { pair =>
        assert(Seq("/a", "/b", "/a").map(path => pair.numberOf(file(path))) == Seq(1, 2, 1))
      }
      attached(rank, attempt = 1) { pair =>
        assert(Seq("/b", "/a", "/c\t\nä").map(path => pair.numberOf(file(path))) == Seq(2, 1, 3))
        assert(pair.numberOf(file("/c\t\nä")) == 3)
        assert(TestStream.header(rank)(_.getInt(At.foreignCount)) == 3)
      }
    }
  }

  test("a file that has changed since an attempt referred to it is refused by its path") {
    withPair() { (_, pair) =>
      pair.numberOf(file("/data.mdb"))
      val changed = Seq(file("/data.mdb", modified = 4), file("/data.mdb").copy(inode = 7),
        file("/data.mdb").copy(bytes = 8192), file("/data.mdb").copy(device = 9))
      changed.foreach { other =>
        val message = intercept[SourceException](pair.numberOf(other)).getMessage
        assert(message.startsWith("/data.mdb has changed during the run"))
      }
    }
  }

  test("no more files than the header has entries for") {
    withPair() { (_, pair) =>
      assert((1 to 4).map(i => pair.numberOf(file(s"/$i"))) == (1 to 4))
      val message = intercept[SourceException](pair.numberOf(file("/5"))).getMessage
      assert(message.contains("more than 4 files") && message.contains("(--in-place)"))
      assert(pair.numberOf(file("/2")) == 2)
    }
  }
}
