package supply.sources.lmdb

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.FileChannel
import java.nio.file.{Files, Path, StandardOpenOption}

import scala.jdk.CollectionConverters._

import org.fusesource.lmdbjni.LMDBException
import org.scalatest.funsuite.AnyFunSuite

import supply.core.SourceException
import supply.testing.TemporaryFolder

class LmdbFileSuite extends AnyFunSuite {

  private def failure(path: Path): String =
    intercept[SourceException](LmdbFile.open(path.toString)).getMessage

  /** A data.mdb of these bytes in a folder of its own. */
  private def database(folder: Path, bytes: Array[Byte]): Path = {
    Files.write(folder.resolve("data.mdb"), bytes)
    folder
  }

  private def page(magicAt: Int, order: ByteOrder): Array[Byte] =
    ByteBuffer.allocate(8192).order(order).putInt(magicAt, 0xbeefc0de).putInt(magicAt + 4,
      1).array()

  test("a directory and a bare data file are the same database") {
    TemporaryFolder { folder =>
      val db = TestLmdb.numbered(folder.resolve("db"), 20)
      assert(LmdbFile.open(db.toString) == LmdbFile(db.resolve("data.mdb").toString, 20))
      assert(LmdbFile.open(db.resolve("data.mdb").toString).entries == 20)
    }
  }

  test("the native library leaves no file in java.io.tmpdir once it is loaded") {
    TemporaryFolder { folder =>
      val file = TestLmdb.numbered(folder.resolve("db"), 1).resolve("data.mdb").toString
      LmdbEnvironments.acquire(file)
      LmdbEnvironments.release(file)
      val loaded =
        Files.readAllLines(Path.of("/proc/self/maps")).asScala.filter(_.contains("liblmdbjni"))
      assert(loaded.nonEmpty && loaded.forall(_.endsWith("(deleted)")))
    }
  }

  test("a walk that cannot begin leaves nothing mapped") {
    TemporaryFolder { folder =>
      val file = TestLmdb.numbered(folder.resolve("db"), 1).resolve("data.mdb")
      val first = new LmdbWalk(file.toString)
      // As if another program wrote to it, and it had outgrown its mapping: the last page in both
      // of its headers.
      val database = FileChannel.open(file, StandardOpenOption.WRITE)
      Seq(136L, 4096L + 136).foreach { at =>
        database.write(ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(0, 1L << 20),
          at)
      }
      database.close()
      intercept[LMDBException](new LmdbWalk(file.toString))
      first.close()
      assert(
        !Files.readAllLines(Path.of("/proc/self/maps")).asScala.exists(_.contains(file.toString)))
    }
  }

  test("a missing path and a folder without a database are named") {
    TemporaryFolder { folder =>
      assert(
        failure(folder.resolve("none")).contains(s"there is no LMDB at ${folder.resolve("none")}"))
      assert(failure(folder).contains("has no data.mdb"))
    }
  }

  test("an empty database is refused") {
    TemporaryFolder(folder =>
      assert(failure(TestLmdb.numbered(folder.resolve("db"), 0)).contains("is empty")))
  }

  test("text and an empty file are not an LMDB") {
    TemporaryFolder(folder =>
      assert(failure(database(folder, "this is a text file\n".getBytes)).contains(
          "no magic number")))
    TemporaryFolder(folder =>
      assert(failure(database(folder, Array.emptyByteArray)).contains("no magic number")))
  }

  test("an LMDB of a 32-bit machine and one of a big-endian machine are named as such") {
    TemporaryFolder(f =>
      assert(failure(database(f, page(12, ByteOrder.LITTLE_ENDIAN))).contains("32-bit")))
    TemporaryFolder(f =>
      assert(failure(database(f, page(16, ByteOrder.BIG_ENDIAN))).contains("big-endian")))
    TemporaryFolder(f =>
      assert(failure(database(f, page(12, ByteOrder.BIG_ENDIAN))).contains("big-endian")))
  }

  test("a database that is cut off is refused before it can crash the process") {
    TemporaryFolder { folder =>
      val whole =
        Files.readAllBytes(TestLmdb.numbered(folder.resolve("db"), 500).resolve("data.mdb"))
      Seq(100, 4096, 4096 + 100, 8192, whole.length - 4096).foreach { length =>
        val cut = Files.createDirectories(folder.resolve(s"cut-$length"))
        assert(failure(database(cut, whole.take(length))).contains("cut off"))
      }
    }
  }
}
