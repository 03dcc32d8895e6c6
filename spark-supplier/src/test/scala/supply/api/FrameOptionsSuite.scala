package supply.api

import java.net.InetAddress
import java.nio.file.{Files, Path, Paths}

import org.apache.spark.sql.{DataFrame, DataFrameWriter, Row}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, SupplyException}
import supply.pair.ConfigFiles
import supply.run.{Hubs, RunOptions}
import supply.testing.Background.{inBackground, result}
import supply.testing.{HubSocket, LocalSession, ResultFiles, TestRank}

/** What the writer of a DataFrame has besides the Supplier's options. */
class FrameOptionsSuite extends AnyFunSuite with LocalSession {
  private val key = Array.tabulate[Byte](32)(_.toByte)

  private def text(file: String): String = Files.readString(Paths.get(file))

  /** The options that name the pairs, as texts. The files are gone. */
  private def texts(files: ConfigFiles): Map[String, String] = {
    val read = Map("mapped-files-text" -> text(files.mappedFiles),
      "named-pipes-text" -> text(files.namedPipes))
    Seq(files.mappedFiles, files.namedPipes).foreach(file => Files.delete(Path.of(file)))
    read
  }

  /** How many rows of `data` two ranks get. */
  private def supplied(data: DataFrame, options: Map[String, String]): Seq[Int] =
    TestRank.opened(2) { (files, ranks) =>
      val taken = ranks.map(rank => inBackground(rank.drain()))
      try writer(data, texts(files) ++ options ++ Map("ranks" -> "2", "timeout" -> "60")).save()
      finally taken.foreach(result(_))
      ranks.foreach(_("close"))
      taken.map(result(_).filter(_.startsWith("OK ")).map(_.split(' ')(5).toInt).sum)
    }

  private def writer(data: DataFrame, options: Map[String, String]): DataFrameWriter[Row] =
    data.write.format("supply").mode("append").options(options)

  private def rows(count: Long, partitions: Int): DataFrame =
    spark.range(0, count, 1, partitions).selectExpr("cast(id as int) as label")

  test("config files are texts, so that no node needs them") {
    val host = sc.getConf.get("spark.driver.host")
    assert(supplied(rows(10, 2), Map("hosts-text" -> s"$host slots=2")) == Seq(5, 5))
  }

  test("errors of texts name their options, and both forms of one are refused") {
    def wrong(options: (String, String)*) = intercept[SupplyException] {
      val all = Map("mapped-files-text" -> "/m", "named-pipes-text" -> "/r /n") ++ options
      val settings = RunOptions.parse(all).settings
      settings.check()
      settings.readHosts()
      settings.configFiles.read()
    }.getMessage
    assert(wrong("mapped-files-text" -> "/a\nb").startsWith("mapped-files-text has 2 lines"))
    assert(wrong("mapped-files-text" -> "b").startsWith("mapped-files-text:1: 'b' is not"))
    assert(wrong("hosts-text" -> "a slots=x").startsWith("hosts-text:1: 'x' is not"))
    assert(wrong("hosts-text" -> "a", "ranks" -> "2").startsWith("hosts-text has 1 slots"))
    Seq("hosts" -> "hosts-text", "mapped-files" -> "mapped-files-text",
      "named-pipes" -> "named-pipes-text").foreach { case (path, text) =>
      assert(wrong(path -> "/etc/hosts", text -> "a") ==
        s"both $path and $text are given: give the path of a file, or its text")
    }
  }

  test("results are read with texts, too") {
    ResultFiles(2) { files =>
      (0 to 1).foreach(rank => files.seal(rank, Seq(rank.toLong)))
      val options = texts(files.configFiles) ++ Map("results" -> "r", "ranks" -> "2",
        "timeout" -> "20")
      def read(more: (String, String)*) =
        spark.read.format("supply").options(options ++ more).load()
      assert(read().count() == 2)
      assert(intercept[ConfigException](read("mapped-files" -> "/m")).getMessage.startsWith(
          "both mapped-files"))
    }
  }

  test("rows are dealt again if a rank would get none, and the run's client is warned") {
    val opened = Hubs.open(sc, "warned", key).split(" ")
    val client = HubSocket.of(InetAddress.getByName(opened(2)), opened(1).toInt,
      HubSocket.Client, "warned", key)
    try {
      val options = Map("frame-name" -> "df", "hub-run" -> "warned")
      assert(supplied(rows(80, 1), options + ("repartition" -> "auto")) == Seq(40, 40))
      assert(client.heard() == ((0, 0,
        """{"warning":"df has 1 partition for 2 ranks, so rank 1 gets no rows","partitions":8,"name":"df"}""")))
      assert(supplied(rows(8, 1), options) == Seq(8, 0))
      assert(client.heard()._3.contains(""""partitions":0"""))
      // What was asked for needs no warning.
      assert(supplied(rows(9, 1), options + ("repartition" -> "3")).sum == 9)
      assert(supplied(rows(8, 2), options + ("repartition" -> "auto")) == Seq(4, 4))
      Hubs.close("warned")
      assert(client.isEnded)
    } finally client.close()
  }

  test("a name, a number of partitions and data without rows that are wrong") {
    def wrong(data: DataFrame, options: (String, String)*) =
      intercept[SupplyException](supplied(data, options.toMap)).getMessage
    assert(wrong(rows(8, 2), "repartition" -> "some").startsWith(
        "repartition is 'some': it must be auto, false or a number of partitions"))
    assert(wrong(rows(8, 2), "repartition" -> "0").startsWith("repartition is '0'"))
    assert(wrong(rows(8, 2).where("label > 9"), "frame-name" -> "df").startsWith(
        "df has no rows: is a filter too strict, or a join empty?"))
    assert(supplied(rows(8, 2).where("label > 9"), Map.empty) == Seq(0, 0))
  }
}
