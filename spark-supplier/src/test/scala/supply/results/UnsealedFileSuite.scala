package supply.results

import java.nio.file.{Files, NoSuchFileException, Path}

import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

import supply.protocol.{Column, Schema}
import supply.protocol.Layout.Constant
import supply.testing.{BlockFileBytes, LockingProcess, TemporaryFolder}

/** What Spark takes from a file that is not sealed yet: step X2 of proto/PROTOCOL.md. */
class UnsealedFileSuite extends AnyFunSuite {
  private val whole = BlockFileBytes(Schema(IndexedSeq(Column("a", "i"))), Nil)
  private val aborted = BlockFileBytes.aborted(whole, "the loss is nan")

  private def withFile(bytes: Array[Byte])(body: Path => Any): Unit = TemporaryFolder { folder =>
    body(BlockFileBytes.write(folder.resolve("pair.r.result.unsealed"), bytes))
    ()
  }

  /** The progress, if that happens when Spark has tested the lock and found it free. */
  private def after(path: Path)(event: => Any): BlockFile.Progress =
    Using.resource(NamedFile.open(path, None)) { file =>
      BlockFile.progress(file, { event; false })
    }

  test("a file without magic has just been created, whatever its size") {
    Seq(0, 5, 70000).foreach { size =>
      withFile(new Array[Byte](size)) { path =>
        assert(BlockFile.progress(path, None) == BlockFile.Created)
      }
    }
  }

  test("the lock of the rank says whether it writes or has died, also in front of the version") {
    Seq(whole.take(8), whole).foreach { bytes =>
      withFile(bytes) { path =>
        Using.resource(new LockingProcess(path, Constant.RANK_LOCK_BYTE)) { rank =>
          assert(rank.hasLock)
          assert(BlockFile.progress(path, None) == BlockFile.Writing)
        }
        assert(BlockFile.progress(path, None) == BlockFile.Died)
      }
    }
  }

  test("a rank that aborts while its lock is tested has not died") {
    withFile(whole) { path =>
      assert(after(path)(Files.write(path, aborted)) == BlockFile.Aborted("the loss is nan"))
    }
  }

  test("a rank that seals while its lock is tested has not died") {
    withFile(whole) { path =>
      assert(after(path)(Files.move(path, path.resolveSibling("pair.r.result"))) ==
        BlockFile.Renamed)
      intercept[NoSuchFileException](BlockFile.progress(path, None))
    }
    withFile(whole) { path =>
      assert(after(path)(BlockFileBytes.write(path, whole)) == BlockFile.Renamed)
    }
  }
}
