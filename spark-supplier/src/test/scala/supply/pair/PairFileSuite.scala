package supply.pair

import java.nio.file.{Files, Path, Paths}
import java.nio.file.attribute.PosixFilePermissions

import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, RankException}
import supply.testing.{TemporaryFolder, TestRank}

/** Which files a task uses, and which ones it refuses. */
class PairFileSuite extends AnyFunSuite {
  private val alice = TestRank.User(61001, 61000)

  private def isRoot: Boolean = Files.getAttribute(Paths.get("/proc/self"), "unix:uid") == 0

  private def chmod(path: Path, mode: String): Path =
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(mode))

  private def pathsIn(folder: Path, group: Option[String] = None): PairPaths =
    PairPaths(s"$folder/mapped", s"$folder/request", s"$folder/notification", "mapped-files.conf:1",
      group)

  private def attach(paths: PairPaths, seconds: Double = 20): Pair =
    Pair.attach(Vector("pair 0" -> paths), 0, seconds)

  private def refusal(paths: PairPaths): String =
    intercept[ConfigException](attach(paths).close()).getMessage

  /** Supplies only END_OF_DATA, and reads it. */
  private def runThrough(rank: TestRank, paths: PairPaths): Unit = {
    val pair = attach(paths)
    try {
      pair.publishEndOfData()
      assert(rank("next") == "END_OF_DATA")
      pair.awaitAllReleased()
      pair.markEndSeen()
    } finally pair.close()
  }

  private def withOwnRank(body: (Path, PairPaths) => Unit): Unit = TemporaryFolder { base =>
    val folder = Files.createDirectory(base.resolve("run"))
    val paths = pathsIn(folder)
    val rank = new TestRank(paths)
    try {
      assert(rank.open() == "OK")
      body(folder, paths)
    } finally rank.close()
  }

  test("a file of this user that a group can use is used: the rank decides whom to let in") {
    withOwnRank { (_, paths) =>
      Seq(paths.mappedFile, paths.requestPipe, paths.notificationPipe).foreach(path =>
        chmod(Paths.get(path), "rw-rw----"))
      attach(paths).close()
    }
  }

  private def withRankOfAlice(group: Option[String])(body: (TestRank, Path) => Unit): Unit = {
    assume(isRoot, "needs root, to start a rank of another user")
    TemporaryFolder { base =>
      chmod(base, "rwxr-xr-x")
      val folder = Files.createDirectory(base.resolve("run"))
      Files.setAttribute(folder, "unix:uid", alice.id)
      val rank = new TestRank(pathsIn(folder), Some(alice))
      try {
        group.foreach(name => assert(rank(s"group $name") == "OK"))
        assert(rank.open() == "OK")
        body(rank, folder)
      } finally rank.close()
    }
  }

  test("a folder that other users can write is refused") {
    withOwnRank { (folder, paths) =>
      Seq("rwxrwx---", "rwx----w-").foreach { mode =>
        chmod(folder, mode)
        val text = refusal(paths)
        assert(text.contains(folder.toString) && text.contains("other users") && text.contains(
          "chmod go-w"))
      }
      Files.setAttribute(folder, "unix:mode", Integer.valueOf(Integer.parseInt("1777", 8)))
      attach(paths).close()
    }
  }

  test("a file that everybody can use is refused if everybody can reach it") {
    withOwnRank { (folder, paths) =>
      Seq(paths.mappedFile, paths.requestPipe, paths.notificationPipe).foreach { path =>
        chmod(Paths.get(path), "rw-r--r--")
        chmod(folder, "rwxr-xr-x")
        val text = refusal(paths)
        assert(text.contains(path) && text.contains("everybody"))
        chmod(folder, "rwx------")
        attach(paths).close()
        chmod(Paths.get(path), "rw-------")
      }
    }
  }

  test("a link and a file of another type are refused by name") {
    withOwnRank { (folder, paths) =>
      val link = Files.createSymbolicLink(folder.resolve("link"), Paths.get(paths.mappedFile))
      assert(refusal(paths.copy(mappedFile = link.toString)).contains(s"$link is a symbolic link"))
      assert(refusal(paths.copy(requestPipe = link.toString)).contains(s"$link is a symbolic link"))
      assert(refusal(paths.copy(mappedFile = paths.requestPipe)).contains(
          s"${paths.requestPipe} is not a regular file"))
      assert(refusal(paths.copy(requestPipe = paths.mappedFile)).contains(
          s"${paths.mappedFile} is not a named pipe"))
      val linked = Files.createSymbolicLink(folder.resolveSibling("linked"), folder)
      val text = refusal(pathsIn(linked))
      assert(text.contains(s"$linked is a symbolic link"))
    }
  }

  test("another user's rank is refused without a group, by the names of both users") {
    withRankOfAlice(None) { (_, folder) =>
      val text = refusal(pathsIn(folder))
      assert(text.contains(s"$folder/mapped belongs to 61001") && text.contains(
        "root") && text.contains("group="))
    }
  }

  test("another user's rank is fed through the group that both sides name") {
    withRankOfAlice(Some("61000")) { (rank, folder) =>
      assert(refusal(pathsIn(folder)).contains("belongs to 61001"),
        "the task's own line must name the group, too")
      runThrough(rank, pathsIn(folder, Some("61000")))
    }
  }

  test("a task waits for a file of another group, and then names it") {
    withRankOfAlice(None) { (_, folder) =>
      val text = intercept[RankException](attach(pathsIn(folder, Some("61000")),
          seconds = 0.5).close()).getMessage
      assert(text.contains("belongs to 61001") && text.contains("not open to the group 61000"))
    }
  }

  test("a missing group is named") {
    withOwnRank { (folder, _) =>
      assert(refusal(pathsIn(folder, Some("no-such-group"))).contains("no group 'no-such-group'"))
    }
  }

  test("a file in the folder of another user is refused") {
    assume(isRoot, "needs root, to give a folder to another user")
    withOwnRank { (folder, paths) =>
      Files.setAttribute(folder, "unix:uid", 61001)
      val text = refusal(paths)
      assert(text.contains(paths.mappedFile) && text.contains("its folder to 61001"))
    }
  }
}
