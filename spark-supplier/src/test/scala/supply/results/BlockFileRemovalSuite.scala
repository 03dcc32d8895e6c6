package supply.results

import java.nio.channels.FileChannel
import java.nio.file.{Files, Path}
import java.nio.file.StandardOpenOption.READ
import java.util.concurrent.atomic.AtomicInteger

import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

import supply.core.PairException
import supply.pair.MappedFile
import supply.protocol.{Column, Schema}
import supply.protocol.Layout.Constant
import supply.testing.Background.{inBackground, result}
import supply.testing.{BlockFileBytes, LockingProcess, TemporaryFolder}

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

  test("tasks that read other files do not wait until a lock is free") {
    TemporaryFolder { folder =>
      val path =
        ResultPath(BlockFileBytes.write(folder.resolve("pair.r.result"), bytes).toString, None)
      OpenResults.find(path)
      val other = new LockingProcess(path.whenSealed, Constant.RANK_LOCK_BYTE)
      val removed = inBackground(OpenResults.remove(path, BlockFileBytes.Generation))
      // The lock is free only when the thread of all files has got to it.
      FileThread.run(other.close())
      result(removed)
      assert(!Files.exists(path.whenSealed))
    }
  }

  test("two probes of the rank's lock in one JVM do not disturb each other") {
    withFile { (path, _) =>
      Using.resource(FileChannel.open(path, READ)) { probed =>
        val own = FileChannel.open(path, READ)
        own.lock(Constant.RANK_LOCK_BYTE, 1, true)
        val answer = inBackground(MappedFile.isLockedByRank(probed))
        own.close()
        assert(!result(answer))
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

  test("a file that replaces the name while Spark waits for the rank's lock stays") {
    withFile { (path, _) =>
      val replaced = new AtomicInteger
      def replace(file: NamedFile): Boolean = {
        assert(file.isNamed)
        BlockFileBytes.write(path, bytes)
        replaced.incrementAndGet()
        false
      }
      Using.resource(NamedFile.open(path, None)) { file =>
        Using.resource(new BlockFileRemoval(file, replace))(removal => removal())
      }
      assert(replaced.get == 1 && Files.exists(path))
    }
  }
}
