package supply.lmdb

import java.io.RandomAccessFile
import java.nio.file.{Files, Path, Paths}
import java.nio.file.attribute.{FileTime, PosixFilePermissions}
import java.util.concurrent.Semaphore

import scala.util.{Random, Try}

import org.apache.hadoop.conf.Configuration
import org.apache.spark.util.SerializableConfiguration
import org.scalatest.funsuite.AnyFunSuite

import supply.core.SourceException
import supply.testing.TemporaryFolder
import supply.testing.Background.{inBackground, result}

/** Local files stand in for files in HDFS: Hadoop's file systems read both. */
class NodeCacheSuite extends AnyFunSuite {
  private val hadoop = new SerializableConfiguration(new Configuration())

  private def remote(folder: Path, name: String, bytes: Int): RemoteFile = {
    val content = new Array[Byte](bytes)
    Random.nextBytes(content)
    Files.write(folder.resolve(name), content)
    RemoteFile.find(folder.resolve(name).toUri.toString, hadoop)
  }

  private def settings(folder: Path, limit: Long = 1 << 20) =
    CacheSettings(folder.resolve("cache").toString, Some(limit), timeout = 1)

  private def copies(folder: Path): Seq[Long] =
    new CacheFolder(folder.resolve("cache")).copies.map(_.bytes).sorted

  /** Acts as if the process that uses the copies had exited long ago. */
  private def leave(folder: Path): Unit = {
    val cache = new CacheFolder(folder.resolve("cache").toAbsolutePath)
    NodeCache.forget(cache.path)
    cache.copies.foreach(copy =>
      Files.setLastModifiedTime(cache.path.resolve(copy.key), FileTime.fromMillis(copy.bytes)))
  }

  private def failure(body: => Any): String = intercept[SourceException](body).getMessage

  test("a file is fetched once, and again when it has changed") {
    TemporaryFolder { folder =>
      val file = remote(folder, "a", 5000000)
      var fetched = 0L
      val copy = NodeCache.get(file, settings(folder, 1 << 24), fetched += _)
      assert(Files.mismatch(copy, folder.resolve("a")) == -1)
      leave(folder)
      assert(NodeCache.get(file, settings(folder, 1 << 24), fetched += _) == copy)
      assert(fetched == 5000000)
      val changed = remote(folder, "a", 300)
      assert(Files.mismatch(NodeCache.get(changed, settings(folder, 1 << 24), _ => ()),
        folder.resolve("a")) == -1)
      leave(folder)
    }
  }

  /** A fetch that has begun, and continues when the semaphore has a permit. */
  private def fetchThatWaits(file: RemoteFile, folder: Path) = {
    val (begun, go) = (new Semaphore(0), new Semaphore(0))
    val fetch = inBackground(NodeCache.get(file, settings(folder),
        { _ =>
          begun.release()
          go.acquire()
        }))
    begun.acquire()
    (fetch, go)
  }

  test("a copy can be used, and another one fetched, while a fetch takes long") {
    TemporaryFolder { folder =>
      val (slow, quick) = (remote(folder, "slow", 1000), remote(folder, "quick", 1000))
      val (fetch, go) = fetchThatWaits(slow, folder)
      val second =
        try {
          def getQuick(limit: Long) =
            result(inBackground(Try(NodeCache.get(quick, settings(folder, limit), _ => ()))))
          assert(failure(getQuick(1500).get).contains("may hold 1000 are in use"))
          val copy = getQuick(2000)
          assert(copy.isSuccess && getQuick(2000) == copy)
          inBackground(NodeCache.get(slow, settings(folder), _ => fail("fetched twice")))
        } finally go.release()
      assert(result(fetch) == result(second))
      leave(folder)
    }
  }

  test("a thread does not wait for another one whose fetch makes no progress") {
    TemporaryFolder { folder =>
      val slow = remote(folder, "slow", 1000)
      val (fetch, go) = fetchThatWaits(slow, folder)
      try {
        val text =
          failure(NodeCache.get(slow, settings(folder), _ => fail("fetched twice")))
        assert(text.startsWith(s"another thread of this node fetches ${slow.uri} into ") &&
          text.contains("has received nothing for 1 s") && text.contains("raise --timeout"))
      } finally go.release()
      assert(result(fetch) == NodeCache.get(slow, settings(folder), _ => fail("fetched twice")))
      leave(folder)
    }
  }

  test("a name with a space or a percent sign is taken literally") {
    TemporaryFolder { folder =>
      Seq("a b", "a%20b").foreach { name =>
        val database = Files.createDirectory(folder.resolve(name))
        Files.write(database.resolve("data.mdb"), name.getBytes)
        val file = RemoteFile.find(s"file:$database", hadoop, inside = Some("data.mdb"))
        assert(file.uri == s"file:$database/data.mdb")
        assert(Files.mismatch(NodeCache.get(file, settings(folder), _ => ()),
          database.resolve("data.mdb")) == -1)
      }
      leave(folder)
    }
  }

  test("the rest of an interrupted fetch is not used, and is removed") {
    TemporaryFolder { folder =>
      val cache = new CacheFolder(folder.resolve("cache"))
      val file = remote(folder, "a", 1000)
      val other = remote(folder, "b", 1000)
      Seq(file, other).foreach { broken =>
        cache.prepare()
        Files.createDirectory(cache.path.resolve(broken.key))
        Files.write(cache.part(broken.key), Array[Byte](1, 2, 3))
      }
      assert(Files.mismatch(NodeCache.get(file, settings(folder), _ => ()),
        folder.resolve("a")) == -1)
      assert(cache.folders == Seq(file.key))
      leave(folder)
    }
  }

  test("the least recently used copy makes room, and a copy in use stays") {
    TemporaryFolder { folder =>
      Seq("a" -> 1000, "b" -> 1001, "c" -> 1002).foreach { case (name, bytes) =>
        NodeCache.get(remote(folder, name, bytes), settings(folder), _ => ())
      }
      assert(copies(folder) == Seq(1000, 1001, 1002))
      val text = failure(NodeCache.get(remote(folder, "d", 1003), settings(folder, 3100), _ => ()))
      assert(text.contains("no room for") && text.contains("has 1003 bytes") && text.contains(
        "--lmdb-cache-size"))
      leave(folder)
      NodeCache.get(remote(folder, "d", 1003), settings(folder, 3100), _ => ())
      assert(copies(folder) == Seq(1001, 1002, 1003))
      leave(folder)
    }
  }

  test("other files in the cache's folder stay, and do not count") {
    TemporaryFolder { folder =>
      val cache = new CacheFolder(folder.resolve("cache"))
      cache.prepare()
      val others = for (name <- Seq("results", "2012", "CAFE");
        file <- Seq("data.mdb", "data.mdb.part", "source"))
        yield cache.path.resolve(name).resolve(file)
      others.foreach { other =>
        Files.createDirectories(other.getParent)
        Files.write(other, new Array[Byte](2000))
      }
      Seq("a", "b").foreach { name =>
        NodeCache.get(remote(folder, name, 1000), settings(folder, 1500), _ => ())
        leave(folder)
      }
      assert(copies(folder) == Seq(1000) && others.forall(Files.size(_) == 2000))
    }
  }

  test("a fetch of another process is awaited while it makes progress, and while it flushes") {
    TemporaryFolder { folder =>
      val cache = new CacheFolder(folder.resolve("cache").toAbsolutePath)
      cache.prepare()
      val file = RemoteFile("hdfs:///a", length = 1L << 30, modified = 0)(hadoop)
      val lock = new CacheLocks(CacheLocks.open(cache.lockFile)).tryFetch(file.key).get
      Files.createDirectory(cache.path.resolve(file.key))
      val part = new RandomAccessFile(cache.part(file.key).toFile, "rw")
      part.setLength(file.length - 1)
      def get() = NodeCache.get(file, settings(folder).copy(timeout = 0.1), _ => ())
      assert(failure(get()).contains(
          s"has received nothing for 0 s (it has ${file.length - 1} of ${file.length} bytes)"))
      part.setLength(file.length)
      part.close()
      val fetched = inBackground {
        Thread.sleep(1000)
        Files.move(cache.part(file.key), cache.complete(file.key))
        lock.release()
      }
      assert(get() == cache.complete(file.key))
      result(fetched)
      leave(folder)
    }
  }

  test("a file larger than the cache is refused") {
    TemporaryFolder { folder =>
      val text = failure(NodeCache.get(remote(folder, "a", 4000), settings(folder, 3000), _ => ()))
      assert(text.contains("has 4000 bytes") && text.contains("may hold 3000") && text.contains(
        "--lmdb-cache-size"))
    }
  }

  test("a file that changes while it is fetched leaves no copy") {
    TemporaryFolder { folder =>
      val file = remote(folder, "a", 1000)
      val text = failure(NodeCache.get(file, settings(folder),
          _ => Files.setLastModifiedTime(folder.resolve("a"), FileTime.fromMillis(0))))
      assert(text.contains("has changed while it was fetched"))
      assert(new CacheFolder(folder.resolve("cache")).folders.isEmpty)
    }
  }

  test("the lock file is as young as its last use, and is made again if it was removed") {
    TemporaryFolder { folder =>
      val lock = new CacheFolder(folder.resolve("cache")).lockFile
      val file = remote(folder, "a", 10)
      def old(): Unit = Files.setLastModifiedTime(lock, FileTime.fromMillis(0))
      def isYoung = Files.getLastModifiedTime(lock).toMillis > 0
      NodeCache.get(file, settings(folder), _ => old())
      assert(isYoung)
      leave(folder)
      old()
      CacheLocks.open(lock)
      assert(isYoung)
      Files.delete(lock)
      NodeCache.get(file, settings(folder), _ => ())
      assert(isYoung)
      leave(folder)
    }
  }

  test("a folder that others can write is refused") {
    TemporaryFolder { folder =>
      Files.createDirectory(folder.resolve("cache"))
      Files.setPosixFilePermissions(folder.resolve("cache"),
        PosixFilePermissions.fromString("rwxrwxrwx"))
      val text = failure(NodeCache.get(remote(folder, "a", 10), settings(folder), _ => ()))
      assert(text.contains("others can write to it") && text.contains("--lmdb-cache"))
    }
  }

  test("a link, and a folder of another user, are refused, and nothing is written there") {
    TemporaryFolder { folder =>
      val target = Files.createDirectory(folder.resolve("target"))
      val cache = folder.resolve("cache")
      def refused(): String = {
        val text = failure(NodeCache.get(remote(folder, "a", 10), settings(folder), _ => ()))
        assert(Files.list(target).count() == 0)
        text
      }
      Files.createSymbolicLink(cache, target)
      assert(refused().contains("it is no folder"))
      Files.delete(cache)
      assume(Files.getAttribute(Paths.get("/proc/self"), "unix:uid") == 0,
        "needs root, to give a folder to another user")
      Files.move(target, cache)
      Files.createSymbolicLink(target, cache)
      Files.setAttribute(cache, "unix:uid", 61001)
      assert(refused().contains("belongs to 61001"))
    }
  }
}
