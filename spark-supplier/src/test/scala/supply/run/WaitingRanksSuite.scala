package supply.run

import java.nio.file.{Files, Path}
import java.nio.file.attribute.PosixFilePermissions
import java.util.concurrent.CountDownLatch

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{DataFrame, DataFrameWriter, Row}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.PairHeldException
import supply.pair.ConfigFiles
import supply.testing.{Background, LocalSession, TemporaryFolder, TestRank, TestStream}

/** Ranks that wait while a DataFrame's writer fails: they get its line, whatever fails. */
class WaitingRanksSuite extends AnyFunSuite with LocalSession {
  import Background.{inBackground, result}

  private def rows(expressions: String*): DataFrame =
    spark.range(0, 9, 1, 3).selectExpr(expressions: _*)

  private def writer(files: ConfigFiles, data: DataFrame,
      options: Map[String, String] = Map.empty) =
    data.write.format("supply").mode("append").option("mapped-files", files.mappedFiles)
      .option("named-pipes", files.namedPipes).option("timeout", 60L).options(options)

  private def opened(files: ConfigFiles, number: Int = 0): TestRank = {
    val rank = new TestRank(files.read()(number))
    assert(rank.open(timeout = 60) == "OK")
    rank
  }

  /** The error of a write for which ranks wait, which they get, too. */
  private def failure(data: DataFrame = rows("id"), options: Map[String, String] = Map.empty,
      before: Path => Unit = _ => (), ranks: Int = 1)(
      change: DataFrameWriter[Row] => DataFrameWriter[Row] = identity): String =
    TestRank.opened(ranks) { (files, waiting) =>
      before(Path.of(files.mappedFiles).getParent)
      val error = intercept[Exception](change(writer(files, data, options)).save()).getMessage
      waiting.foreach(rank => assert(rank("next") == s"ERROR SUPPLY_ERROR_SPARK $error"))
      error
    }

  test("an option that cannot be read, has no effect, or a wrong value") {
    for {
      (says, ranks, options) <- Seq[(String, Int, Map[String, String])](
        ("…did you mean --epochs?", 1, Map("epoch" -> "3")),
        ("…'many'", 1, Map("epochs" -> "many")),
        ("…'soon'", 1, Map("timeout" -> "soon")),
        // Then nobody knows how many they are, and all are notified.
        ("…'two'", 2, Map("ranks" -> "two")),
        ("…--ranks is 0", 2, Map("ranks" -> "0")),
        ("--shuffle is 'foo'", 1, Map("shuffle" -> "foo")),
        ("--shuffle-buffer is for --shuffle rows, and --shuffle is 'partitions'", 1,
          Map("shuffle-buffer" -> "-5")),
        ("…give both, or neither", 1, Map("shuffle-buffer" -> "16", "shuffle" -> "all")),
        ("--shuffle-buffer is -5", 1, Map("shuffle-buffer" -> "-5", "shuffle" -> "rows")))
      found = failure(options = options, ranks = ranks)()
    } assert(if (says.startsWith("…")) found.contains(says.tail) else found.startsWith(says), found)
  }

  test("what only a writer has") {
    for ((says, change) <- Seq[(String, DataFrameWriter[Row] => DataFrameWriter[Row])](
        "ranks are supplied with mode(\"append\")" -> (_.mode("overwrite")),
        "ranks are supplied with mode(\"append\")" -> (_.mode("error")),
        "save() takes no path" -> (_.option("path", "/tmp/a")),
        "partitionBy() means nothing to ranks" -> (_.partitionBy("half"))))
      assert(failure(rows("id", "id % 2 as half"))(change).startsWith(says))
  }

  test("types that are refused, also by Spark itself") {
    val types = Seq("make_interval(1, 2) i" -> "interval", "null i" -> "void") ++
      // Spark 3.5 writes them to no data source.
      Seq("interval '3' day i" -> "interval day", "interval '3' year i" -> "interval year")
        .filter(_ => spark.version < "4")
    types.foreach { case (column, name) =>
      assert(failure(rows(column))().startsWith(
          s"a column cannot be supplied as it is ('i' is $name, use "))
    }
  }

  test("files that a task refuses for their mode, or for that of their folder") {
    def mode(path: Path, text: String): Unit = {
      Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(text))
      ()
    }
    Seq("pair-0", "pair-0.ntf").foreach { name =>
      assert(failure(before = { folder =>
        mode(folder, "rwxr-xr-x")
        mode(folder.resolve(name), "rw-rw-rw-")
      })().contains(s"$name can be used by everybody"))
    }
    assert(failure(before = mode(_, "rwxrwxrwx"))().contains("can be written by other users"))
  }

  test("cores that other jobs hold") {
    val release = new CountDownLatch(1)
    WaitingRanksSuite.release = release
    val other = sc.parallelize(0 until 2, 2).foreachAsync(_ => WaitingRanksSuite.release.await())
    try assert(failure(options = Map("timeout" -> "3"))().contains("Other jobs hold cores"))
    finally {
      release.countDown()
      other.get()
    }
  }

  test("a rank that comes after the error has it, too, unless a new run has begun") {
    TemporaryFolder { folder =>
      val files = TestRank.configFiles(folder, 1)
      val error = intercept[Exception](
        writer(files, rows("id"), Map("shuffle" -> "foo")).save()).getMessage
      val late = opened(files)
      try assert(late("next") == s"ERROR SUPPLY_ERROR_SPARK $error")
      finally late.kill()
    }
    TemporaryFolder { folder =>
      val files = TestRank.configFiles(folder, 1)
      intercept[Exception](writer(files, rows("id"), Map("shuffle" -> "foo")).save())
      val run = inBackground(writer(files, rows("id")).save())
      // A rank that comes before the new run gets the old error.
      TestStream.await(!Thread.getAllStackTraces.keySet
          .asScala.exists(_.getName.endsWith(files.mappedFiles)))
      val rank = opened(files)
      try assert(rank.drain().last == "END_OF_DATA")
      finally rank.close()
      result(run)
    }
  }

  test("without the names of their files, nobody can be notified") {
    val error = intercept[Exception](rows("id").write.format("supply").mode("append").save())
    assert(error.getMessage.contains("--mapped-files"))
  }

  test("a second run with the same files fails and names the first, which goes on") {
    TestRank.opened(1) { (files, ranks) =>
      val (rank, options) = ranks.head -> Map("block-elements" -> "1")
      val first = inBackground(writer(files, rows("id"), options).save())
      assert(rank("next").startsWith("OK 0"))
      val message =
        intercept[PairHeldException](writer(files, rows("id"), options).save()).getMessage
      assert(message.matches(
          s"(?s).*another run \\(number [0-9a-f]{16}, process ${ProcessHandle.current().pid()}\\) supplies its rank.*"))
      assert(rank("release 0") == "OK")
      assert(rank.drain().last == "END_OF_DATA")
      rank.close()
      result(first)
    }
  }

  test("a host file with too few slots") {
    TemporaryFolder { folder =>
      val hosts = Files.writeString(folder.resolve("hosts"), "localhost slots=1\n").toString
      assert(failure(options = Map("hosts" -> hosts, "ranks" -> "2"), ranks = 2)().contains(
          "has 1 slots for 2 ranks"))
    }
  }
}

object WaitingRanksSuite {
  @volatile var release: CountDownLatch = _
}
