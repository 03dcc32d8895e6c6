package supply.lmdb

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.FileChannel
import java.nio.file.{Files, Path, StandardOpenOption}
import java.util.Locale

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import supply.core.SourceException
import supply.testing.TemporaryFolder

class LmdbFileSuite extends AnyFunSuite {

  private def failure(path: Path): String =
    intercept[SourceException](LmdbFile.open(path.toString)).getMessage

  test("a scheme is the same in every language") {
    val usual = Locale.getDefault
    try for (language <- Seq("tr", "az", "lt", "en")) {
        Locale.setDefault(Locale.forLanguageTag(language))
        for (name <- Seq("FILE:///data/x", "File:///data/x", "file:/data/x"))
          assert(!RemoteFile.isRemote(name) && RemoteFile.localPath(name) == "/data/x", language)
        assert(RemoteFile.isRemote("HDFS://host/x") && RemoteFile.isRemote("VIEWFS://x"))
      }
    finally Locale.setDefault(usual)
  }

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
      assert(intercept[SourceException](new LmdbWalk(file.toString)).getMessage.contains(
          "must not be written to"))
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

  for ((what, bytes, says) <- Seq(
      ("text", "this is a text file\n".getBytes, "no magic number"),
      ("an empty file", Array.emptyByteArray, "no magic number"),
      ("an LMDB of a 32-bit machine", page(12, ByteOrder.LITTLE_ENDIAN), "32-bit"),
      ("an LMDB of a big-endian machine", page(16, ByteOrder.BIG_ENDIAN), "big-endian"),
      ("one of a big-endian machine of 32 bits", page(12, ByteOrder.BIG_ENDIAN), "big-endian"),
      ("a pointer of Git LFS",
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n".getBytes,
        "git lfs pull")))
    test(s"$what is refused as such") {
      TemporaryFolder { folder =>
        val message = failure(database(folder, bytes))
        assert(message.contains("/data.mdb is not an LMDB that can be read here: "))
        assert(message.contains(says))
      }
    }

  test("only pages that the entries use must be there") {
    TemporaryFolder { folder =>
      val db = TestLmdb.numbered(folder.resolve("db"), 200)
      Seq(0 until 50, 50 until 60).foreach(deleted =>
        TestLmdb.change(db)((database, transaction) =>
          deleted.foreach(i => database.delete(transaction, TestLmdb.key(i)))))
      TestLmdb.change(db) { (database, transaction) =>
        database.put(transaction, "large".getBytes, new Array[Byte](900000))
        database.delete(transaction, "large".getBytes)
        ()
      }
      val file = db.resolve("data.mdb")
      val whole = Files.readAllBytes(file)
      val lastPage = 1 + Seq(16 + 120, 4096 + 16 + 120).map(
        ByteBuffer.wrap(whole).order(ByteOrder.LITTLE_ENDIAN).getLong(_)).max
      assert(whole.length < lastPage * 4096)
      assert(LmdbFile.open(db.toString).entries == 140)
      val walk = new LmdbWalk(file.toString)
      try assert(Iterator.continually(walk.next()).takeWhile(identity).size == 140)
      finally walk.close()
      // What the entries use is still missed.
      val cut = Files.createDirectories(folder.resolve("cut"))
      assert(failure(database(cut, whole.take(3 * 4096))).contains("cut off"))
    }
  }

  test("a value whose pages are not all there is missed") {
    TemporaryFolder { folder =>
      val db = TestLmdb.write(folder.resolve("db"), Seq("a".getBytes -> new Array[Byte](100000)))
      val whole = Files.readAllBytes(db.resolve("data.mdb"))
      assert(failure(database(Files.createDirectories(folder.resolve("cut")),
            whole.take(whole.length - 4096))).contains("cut off"))
    }
  }

  test("named databases are listed") {
    TemporaryFolder { folder =>
      val db = folder.resolve("db")
      Seq("train", "val").foreach(name =>
        TestLmdb.change(db, name = name)((database, transaction) =>
          database.put(transaction, TestLmdb.key(1), TestLmdb.datum(1).toByteArray)))
      assert(failure(db).contains("named databases (train, val)"))
    }
  }

  test("a walk maps what the file has, and not what its writer has reserved") {
    TemporaryFolder { folder =>
      val db = TestLmdb.change(folder.resolve("db"), mapSize = 1L << 40)((database, transaction) =>
        database.put(transaction, TestLmdb.key(1), TestLmdb.datum(1).toByteArray))
      val file = db.resolve("data.mdb")
      val walk = new LmdbWalk(file.toString)
      try {
        val addresses = Files.readAllLines(Path.of("/proc/self/maps")).asScala
          .filter(_.endsWith(file.toRealPath().toString)).head.takeWhile(_ != ' ').split('-')
          .map(java.lang.Long.parseLong(_, 16))
        assert(walk.next() && addresses.last - addresses.head == Files.size(file))
      } finally walk.close()
    }
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
