package supply.run

import java.io.IOException
import java.net.URI
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.nio.file.attribute.PosixFilePermissions

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{CommonPathCapabilities, FileStatus, FileSystem, FilterFileSystem, FSDataInputStream, Path => HadoopPath, RawLocalFileSystem}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException
import supply.testing.TemporaryFolder

class CheckpointFolderSuite extends AnyFunSuite {
  private val conf = new Configuration

  private def save(folder: CheckpointFolder, number: Long, states: (Int, String)*): Unit = {
    states.foreach { case (rank, state) =>
      val out = folder.create(number, rank)
      out.write(state.getBytes(UTF_8))
      out.close()
    }
    folder.complete(number, states.map(_._1), s"the text of $number", keep = 2)
  }

  /** A folder with this many checkpoints of rank 0. */
  private def withCheckpoints(saved: Int = 0)(body: (CheckpointFolder, Path) => Unit): Unit =
    TemporaryFolder { temporary =>
      val path = temporary.resolve("new/checkpoints")
      val folder = CheckpointFolder.of(s"file://$path", conf, isWritten = true)
      (1 to saved).foreach(number => save(folder, number.toLong, 0 -> "state"))
      body(folder, path)
    }

  test("the newest complete one is found, with what its ranks have saved") {
    withCheckpoints() { (folder, _) =>
      assert(folder.latest(after = 0) == ((None, Nil)))
      assert(folder.next() == 1)
      save(folder, 1, 0 -> "a", 2 -> "bcd")
      assert(folder.latest(after = 0) == ((Some(Checkpoint(1, Seq(0, 2), "the text of 1")), Nil)))
      assert(folder.latest(after = 1) == ((None, Nil)))
      val in = folder.open(1, 2)
      assert(new String(in.readAllBytes(), UTF_8) == "bcd")
      in.close()
    }
  }

  test("a folder that is only read is not made") {
    TemporaryFolder { folder =>
      val path = folder.resolve("not there")
      val found = CheckpointFolder.of(s"file://$path", conf, isWritten = false)
      assert(found.latest(after = 0) == ((None, Nil)))
      assert(!Files.exists(path))
    }
  }

  test("what a call makes is its user's alone, and a folder that others may write is refused") {
    withCheckpoints(1) { (folder, path) =>
      assert(PosixFilePermissions.toString(Files.getPosixFilePermissions(path)) == "rwx------")
      for (mode <- Seq("rwxrwxrwx", "rwxrwx---", "rwx----w-"); isWritten <- Seq(true, false)) {
        Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(mode))
        val text =
          intercept[ConfigException](CheckpointFolder.of(s"file://$path", conf,
              isWritten)).getMessage
        assert(text.contains(s"others than its owner may write there ($mode)"))
        assert(text.contains("chmod go-w") && text.contains("name a folder in it"))
      }
      CheckpointFolder.of(s"file://$path/of-this-run", conf, isWritten = true)
    }
  }

  test("the owner must be this user or root, and modes count where the file system has any") {
    TemporaryFolder { folder =>
      def stated(owner: String, mode: String, hasModes: Boolean = true) = {
        val conf = new Configuration(false)
        conf.set("fs.stated.impl", classOf[StatedFileSystem].getName)
        conf.setBoolean("fs.stated.impl.disable.cache", true)
        conf.set("stated.owner", owner)
        conf.set("stated.mode", mode)
        conf.setBoolean("stated.hasModes", hasModes)
        Seq(true, false).map(isWritten =>
          Try(CheckpointFolder.of(s"stated://$folder", conf, isWritten)).failed.toOption.map(
            _.getMessage)).distinct match {
          case Seq(one) => one.getOrElse("")
          case several => fail(several.toString)
        }
      }
      val me = System.getProperty("user.name")
      Seq(me, "root").foreach(owner => assert(stated(owner, "755") == ""))
      Seq("mallory", "12345", s"${me}2").foreach(owner =>
        assert(stated(owner, "700").contains(s"cannot be used: it belongs to $owner, and")))
      Seq("775", "1777", "720").foreach(mode =>
        assert(stated(me, mode).contains("others than its owner may write there")))
      // An object store says that all may write, and names anybody as the owner.
      assert(stated("mallory", "777", hasModes = false) == "")
    }
  }

  test("only the newest ones stay, and what is torn is skipped, with the reason") {
    withCheckpoints(3) { (folder, path) =>
      assert(!Files.exists(path.resolve("checkpoint-1")))
      folder.create(4, 0).close()
      save(folder, 5, 0 -> "state", 1 -> "state")
      Files.write(path.resolve("checkpoint-5/rank-1"), "sta".getBytes(UTF_8))
      Files.createDirectory(path.resolve("checkpoint-6"))
      Files.write(path.resolve("checkpoint-6/complete"), "{\"bytes\"".getBytes(UTF_8))
      Files.createDirectory(path.resolve("checkpoint-x"))
      val (found, torn) = folder.latest(after = 0)
      assert(found.map(_.number).contains(3L))
      assert(torn.map(_.split("checkpoint-")(1).take(3)) == Seq("6: ", "5: "))
      assert(torn(1).endsWith("rank-1 has 3 of 5 bytes"))
      assert(
        !Files.exists(path.resolve("checkpoint-4")) && !Files.exists(path.resolve("checkpoint-2")))
      Files.delete(path.resolve("checkpoint-6/complete"))
      assert(folder.latest(after = 0)._2.head.endsWith("checkpoint-6: it was not completed"))
      assert(folder.next() == 7)
    }
  }

  test("two calls do not write into one checkpoint, and a call can be repeated") {
    withCheckpoints(1) { (folder, path) =>
      val again = intercept[ConfigException](folder.create(1, 0)).getMessage
      assert(again.startsWith(s"rank-0 of file:$path/checkpoint-1 is there already"))
      assert(again.contains("give each call a folder of its own"))
      folder.complete(1, Seq(0), "the text of 1", keep = 2)
      val other = intercept[ConfigException](folder.complete(1, Seq(0), "another text", keep = 2))
      assert(other.getMessage.startsWith("complete of "))
      assert(folder.latest(after = 0)._1.map(_.text).contains("the text of 1"))
    }
  }

  test("a call completes what it has saved, and deletes nothing for others") {
    withCheckpoints(2) { (folder, path) =>
      val other = CheckpointFolder.of(s"file://$path", conf, isWritten = true)
      other.create(3, 0).close()
      Files.createDirectories(path.resolve("checkpoint-9"))
      Files.write(path.resolve("checkpoint-9/rank-0"), Array.emptyByteArray)
      for {
        (number, ranks, missing) <- Seq((1L, Seq(0), "/rank-0"), (9L, Seq(0), "/rank-0"),
          (3L, Seq(0, 1), "/rank-1"), (99L, Nil, ""))
        text =
          intercept[ConfigException](other.complete(number, ranks, "text", keep = 1)).getMessage
      } assert(text == s"this run has not saved file:$path/checkpoint-$number$missing")
      assert(folder.latest(after = 0)._1.map(_.number).contains(2L))
      assert(Files.exists(path.resolve("checkpoint-1/complete")))
      other.complete(3, Seq(0), "text", keep = 1)
      assert(folder.latest(after = 0)._1.map(_.number).contains(3L))
    }
  }

  test("one that cannot be read is an error, and no older one is used") {
    withCheckpoints(2) { (folder, path) =>
      val broken = new FilterFileSystem(FileSystem.getLocal(conf).getRaw) {
        override def open(file: HadoopPath, buffer: Int): FSDataInputStream =
          if (file.getParent.getName == "checkpoint-2") throw new IOException("a bad sector")
          else super.open(file, buffer)
      }
      val text = intercept[ConfigException](
        new CheckpointFolder(folder.path, broken).latest(after = 0)).getMessage
      assert(text.contains("checkpoint-2 cannot be read: ") && text.contains("a bad sector"))
      assert(text.endsWith("if it is damaged, delete it, and the one before it is used"))
      Files.delete(path.resolve("checkpoint-2/rank-0"))
      val (found, torn) = folder.latest(after = 0)
      assert(found.map(_.number).contains(1L))
      assert(torn.map(_.split("checkpoint-")(1)) == Seq("2: rank-0 is not there"))
    }
  }

  test(
    "one whose last file ends after any of its bytes is skipped, and there are no checksums beside it") {
    withCheckpoints(2) { (folder, path) =>
      val complete = path.resolve("checkpoint-2/complete")
      val names = Using.resource(Files.list(complete.getParent))(
        _.iterator.asScala.map(_.getFileName.toString).toSet)
      assert(names == Set("rank-0", "complete"))
      val bytes = Files.readAllBytes(complete)
      bytes.indices.foreach { end =>
        Files.write(complete, bytes.take(end))
        assert(folder.latest(after = 0)._1.map(_.number).contains(1L), end)
      }
    }
  }

  test("a folder that cannot be used") {
    TemporaryFolder { folder =>
      Files.write(folder.resolve("file"), Array.emptyByteArray)
      Seq(s"file://$folder/file/in", "nofs://host/folder").foreach { name =>
        val error = intercept[ConfigException](CheckpointFolder.of(name, conf, isWritten = true))
        assert(error.getMessage.startsWith(s"the folder of checkpoints $name cannot be used: "))
      }
    }
  }
}

/** Local files, of which it states owner and mode as its configuration has them. */
final class StatedFileSystem extends RawLocalFileSystem {
  override def getUri: URI = URI.create("stated:///")

  override def getFileStatus(path: HadoopPath): FileStatus = {
    val own = super.getFileStatus(path)
    new FileStatus(own.getLen, own.isDirectory, 1, 1, 0, 0,
      new FsPermission(getConf.get("stated.mode")), getConf.get("stated.owner"), "users", path)
  }

  override def hasPathCapability(path: HadoopPath, name: String): Boolean =
    name == CommonPathCapabilities.FS_PERMISSIONS && getConf.getBoolean("stated.hasModes", true)
}
