package supply.pair

import java.nio.file.{Files, Path, StandardCopyOption}
import java.nio.file.attribute.FileTime

import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException

class ConfigFilesSuite extends AnyFunSuite {

  private def files(mapped: String, pipes: String): ConfigFiles = {
    val folder = Files.createTempDirectory("supply-config")
    folder.toFile.deleteOnExit()
    def write(name: String, text: String): Path = {
      val path = folder.resolve(name)
      path.toFile.deleteOnExit()
      Files.writeString(path, text)
    }
    ConfigFiles(write("mapped-files.conf", mapped).toString,
      write("named-pipes.conf", pipes).toString)
  }

  private def failure(files: ConfigFiles, count: Int = 1): String =
    intercept[ConfigException](files.read(count)).getMessage

  test("line i belongs to local rank i; comments and blank lines do not count") {
    val config = files(
      "# mapped files\n/shm/a ring=16MiB block=4MiB # first\n\n  /shm/b\n",
      "/shm/a.req /shm/a.ntf\n# the second\n/shm/b.req\t/shm/b.ntf\n")
    val pairs = config.read(2)
    assert(pairs.map(_.mappedFile) == Seq("/shm/a", "/shm/b"))
    assert(pairs.map(_.requestPipe) == Seq("/shm/a.req", "/shm/b.req"))
    assert(pairs.map(_.notificationPipe) == Seq("/shm/a.ntf", "/shm/b.ntf"))
    assert(pairs(1).configLine == s"${config.mappedFiles}:4")
  }

  test("the byte order mark of an editor is no part of the first line") {
    val config = files("\ufeff/a\n", "\ufeff# pipes\n/a.req /a.ntf\n")
    assert(config.read().map(_.mappedFile) == Seq("/a"))
    val texts = ConfigFiles("m", "n", Map("m" -> "\ufeff/b", "n" -> "\ufeff/b.req /b.ntf"))
    assert(texts.read().map(pair => pair.mappedFile -> pair.requestPipe) == Seq("/b" -> "/b.req"))
  }

  test("a changed file is read again, and others in between") {
    val config = files("/a\n", "/a.req /a.ntf\n")
    val other = files("/c\n", "/c.req /c.ntf\n")
    assert(config.read().map(_.mappedFile) == Seq("/a"))
    assert(other.read().map(_.mappedFile) == Seq("/c"))
    Files.writeString(Path.of(config.mappedFiles), "/a\n/b\n")
    Files.writeString(Path.of(config.namedPipes), "/a.req /a.ntf\n/b.req /b.ntf\n")
    assert(config.read().map(_.mappedFile) == Seq("/a", "/b"))
    Files.delete(Path.of(config.namedPipes))
    assert(failure(config).contains(config.namedPipes))
  }

  test("a file of the same size and time is read again") {
    val config = files("/a\n", "/a.req /a.ntf\n")
    val mapped = Path.of(config.mappedFiles)
    val before = FileTime.fromMillis(1000000000000L)
    Files.setLastModifiedTime(mapped, before)
    Thread.sleep(1500) // From then on, the answer is kept.
    assert(config.read().map(_.mappedFile) == Seq("/a") && (config.read() eq config.read()))
    Files.writeString(mapped, "/b\n")
    Files.setLastModifiedTime(mapped, before)
    assert(config.read().map(_.mappedFile) == Seq("/b"))
    // By another file of that name, as rsync and an editor write it.
    val copy = Files.writeString(mapped.resolveSibling("copy"), "/c\n")
    Files.setLastModifiedTime(copy, before)
    Files.move(copy, mapped, StandardCopyOption.REPLACE_EXISTING)
    assert(config.read().map(_.mappedFile) == Seq("/c"))
    // In the same tick of the kernel's clock.
    (0 until 50).foreach { i =>
      Files.writeString(mapped, s"/${i % 10}\n")
      assert(config.read().map(_.mappedFile) == Seq(s"/${i % 10}"))
    }
  }

  test("a line may name a group") {
    val pairs = files("/a group=feeders ring=1MiB\n/b\n", "/a.req /a.ntf\n/b.req /b.ntf\n").read(2)
    assert(pairs.map(_.group) == Seq(Some("feeders"), None))
  }

  test("files of different length are refused with both lengths") {
    val message = failure(files("/a\n/b\n", "/a.req /a.ntf\n"))
    assert(message.contains("has 2 lines") && message.contains("has 1"))
  }

  test("too few lines are refused, with the number that is needed") {
    val message = failure(files("/a\n", "/a.req /a.ntf\n"), count = 3)
    assert(message.contains("for 1 local ranks") && message.contains(
      "3 are needed") && message.contains("make-configs"))
  }

  test("a missing file is named") {
    assert(failure(ConfigFiles("/nowhere/m.conf", "/nowhere/n.conf")).contains("/nowhere/m.conf"))
  }

  test("a mapped file has the size that libsupply gives it") {
    val lines = Seq(
      "/a" -> 4 * (2 << 20), "/b ring=1MiB" -> (1 << 20), "/c block=5000" -> 4 * 8192,
      "/d ring=20000 block=8192" -> 3 * 8192,
      "/e ring=16KiB group=g block=4096" -> 16384,
      "/f ring=auto" -> (16 << 20), "/g block=6MiB ring=auto" -> (18 << 20),
      "/h ring=auto block=32MiB" -> 4 * (32 << 20))
    val pairs = files(lines.map(_._1).mkString("\n"),
      lines.map(line => s"${line._1.take(2)}.req ${line._1.take(2)}.ntf").mkString("\n"))
    // A header and the schema in front of the ring.
    assert(pairs.read().map(_.mappedBytes) == lines.map(65536L + _._2))
    Seq("ring=", "ring=x", "block=0", "ring=1TiB", "ring=9223372036854775807GiB").foreach { word =>
      assert(failure(files(s"/a $word\n", "/a.req /a.ntf\n")).contains("is not a size"), word)
    }
  }

  test("a wrong line is named by file and number") {
    Seq(
      ("/a\nb\n", "/a.req /a.ntf\n/b.req /b.ntf\n", "mapped-files.conf:2",
        "'b' is not an absolute path"),
      ("/a\n/b size=3\n", "/a.req /a.ntf\n/b.req /b.ntf\n", "mapped-files.conf:2",
        "unknown word 'size=3'"),
      ("/a group=\n", "/a.req /a.ntf\n", "mapped-files.conf:1", "'group=' names no group"),
      ("/a group=b group=c\n", "/a.req /a.ntf\n", "mapped-files.conf:1", "'group=c' is the second"),
      ("/a\n", "\n/a.req\n", "named-pipes.conf:2", "found 1 words"),
      ("/a\n", "/a.req a.ntf\n", "named-pipes.conf:1", "'a.ntf' is not an absolute path")).foreach {
      case (mapped, pipes, place, what) =>
        val message = failure(files(mapped, pipes))
        assert(message.contains(place) && message.contains(what))
    }
  }
}
