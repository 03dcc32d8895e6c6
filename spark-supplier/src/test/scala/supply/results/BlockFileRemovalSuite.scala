package supply.results

import java.nio.file.{Files, Path}

import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

import supply.core.PairException
import supply.protocol.Layout.Constant
import supply.protocol.{Column, Schema}
import supply.testing.{BlockFileBytes, LockingProcess, TemporaryFolder}
import supply.testing.Background.{inBackground, result}

/** Spark removes only the file that it has open, and only while nobody else creates or removes it. */
class BlockFileRemovalSuite extends AnyFunSuite {
  private val bytes = BlockFileBytes(Schema(IndexedSeq(Column("a", "i"))), Nil)

  private def withFile(body: (Path, BlockFile) => Any): Unit = TemporaryFolder { folder =>
    val path = BlockFileBytes.write(folder.resolve("pair.r.result"), bytes)
    Using.resource(BlockFile.open(path, None))(body(path, _))
    ()
  }

  private def isReaderLocked(path: Path): Boolean =
    Using.resource(new LockingProcess(path, Constant.READER_LOCK_BYTE))(!_.hasLock)

  test("the file is removed, once") {
    withFile { (path, file) =>
      file.remove()
      assert(!Files.exists(path))
      file.remove()
    }
  }

  Seq("REMOVER_LOCK_BYTE" -> Constant.REMOVER_LOCK_BYTE,
    "RANK_LOCK_BYTE" -> Constant.RANK_LOCK_BYTE).foreach { case (name, byte) =>
    test(s"a file stays, and stays locked for its reader, while another process holds $name") {
      withFile { (path, file) =>
        Using.resource(new LockingProcess(path, byte)) { other =>
          assert(other.hasLock)
          assert(intercept[PairException](file.remove()).getMessage.contains(name))
          assert(Files.exists(path) && isReaderLocked(path))
        }
        file.remove()
        assert(!Files.exists(path))
      }
    }
  }

  test("a later file of the same name stays") {
    withFile { (path, file) =>
      BlockFileBytes.write(path, bytes)
      file.remove()
      assert(Files.exists(path))
    }
  }

  test("a file that replaces the name while Spark waits for the remover's lock stays") {
    withFile { (path, file) =>
      val other = new LockingProcess(path, Constant.REMOVER_LOCK_BYTE)
      val removing = inBackground(file.remove())
      BlockFileBytes.write(path, bytes)
      other.close()
      result(removing)
      assert(Files.exists(path))
    }
  }
}
