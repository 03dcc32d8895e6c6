package supply.results

import java.nio.file.Files
import java.util.concurrent.TimeUnit

import org.apache.spark.TaskKilledException
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.types.{LongType, StringType, StructField, StructType}
import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, ContractException, PlacementException, RankEndedException, RankException, SupplyException}
import supply.protocol.{Column, Schema}
import supply.task.PlacedTask
import supply.testing.{BlockFileBytes, LocalSpark, ResultFiles}
import supply.testing.Background.{inBackground, result}

/** Results of ranks as a DataFrame, and which ones are refused. */
class ResultsSuite extends AnyFunSuite with LocalSpark {
  import ResultsSuite._

  private lazy val spark = SparkSession.builder().config(sc.getConf).getOrCreate()

  private def ids(data: DataFrame): Seq[Long] =
    data.select("id").collect().map(_.getLong(0)).toSeq.sorted

  private def twoRanks(body: ResultFiles => Unit): Unit = ResultFiles(2) { files =>
    files.seal(0, 0L until 250)
    files.seal(1, 250L until 300)
    body(files)
  }

  test("all rows of all ranks are read, with the columns of the ranks") {
    twoRanks { files =>
      val data = files.load(spark)
      assert(data.schema == StructType(Seq(StructField("id", LongType, nullable = false),
          StructField("label", StringType, nullable = false))))
      assert(data.rdd.getNumPartitions == 2)
      assert(data.collect().map(row => row.getLong(0) -> row.getString(1)).toSeq.sorted ==
        (0L until 300).map(id => id -> id.toString))
      assert(data.count() == 300)
    }
  }

  test("only the columns of a query are read, and text outlives its block") {
    twoRanks { files =>
      val data = files.load(spark)
      val labels = data.select("label").filter("length(label) = 1")
      assert(labels.queryExecution.executedPlan.toString.contains("[label]"))
      assert(labels.collect().map(_.getString(0)).toSeq.sorted == (0 to 9).map(_.toString))
      assert(data.selectExpr("min(label)", "max(label)").head().toSeq == Seq[Any]("0", "99"))
      assert(data.groupBy("label").count().filter("count = 1").count() == 300)
      val other = spark.range(200, 400).selectExpr("id", "id * 2 as twice")
      assert(data.join(other, "id").selectExpr("sum(twice)").head().getLong(0) ==
        (200L until 300).map(_ * 2).sum)
    }
  }

  test("Spark knows the number of rows and the size") {
    twoRanks { files =>
      val plan = files.load(spark).queryExecution.optimizedPlan.stats
      assert(plan.rowCount == Some(BigInt(300)))
      assert(plan.sizeInBytes == Files.size(files.path(0)) + Files.size(files.path(1)))
      def size(column: String) =
        files.load(spark).select(column).queryExecution.optimizedPlan.stats.sizeInBytes
      // Which of two frames a join sends to all executors.
      assert(size("id") == 300 * 8 && size("label") == plan.sizeInBytes - 300 * 8)
    }
  }

  test("the golden types reach Spark's rows") {
    ResultFiles(1) { files =>
      val golden = java.nio.file.Paths.get("../proto/golden/rank.predictions.result")
      val bytes = Files.readAllBytes(golden)
      bytes(supply.protocol.Layout.MappedFileHeader.rank) = 0
      BlockFileBytes.write(files.path(0), bytes)
      val data = files.load(spark)
      assert(data.selectExpr("sum(id)", "count(score)", "sum(vector[2])", "max(label)",
        "count_if(correct)", "max(day)", "max(length(key))").head().toSeq.map(_.toString) ==
        Seq("60", "4", "45.0", "été", "3", "2024-10-04", "2000"))
    }
  }

  test("a rank without rows has no partition") {
    ResultFiles(2) { files =>
      files.seal(0, Nil)
      files.seal(1, Seq(7L))
      assert(files.load(spark).rdd.getNumPartitions == 1)
      assert(ids(files.load(spark)) == Seq(7L))
      files.seal(1, Nil, name = "none")
      files.seal(0, Nil, name = "none")
      assert(files.load(spark, "results" -> "none").count() == 0)
    }
  }

  test("load() waits until the last rank has sealed") {
    ResultFiles(2) { files =>
      files.seal(0, Seq(1L))
      val loading = inBackground(files.load(spark))
      intercept[java.util.concurrent.TimeoutException](loading.get(1, TimeUnit.SECONDS))
      files.seal(1, Seq(2L))
      assert(ids(result(loading)) == Seq(1, 2))
    }
  }

  private def refusal[E <: SupplyException: scala.reflect.ClassTag](
      files: ResultFiles, options: (String, Any)*): String =
    intercept[E](files.load(spark, options: _*)).getMessage

  test("a rank that never seals is named after the timeout, with its folder") {
    ResultFiles(2) { files =>
      files.seal(0, Seq(1L))
      val text = refusal[RankException](files, "timeout" -> 1)
      assert(text.contains("rank 1 has not sealed its result 'r' within 1 s") &&
        text.contains(files.folder.toString) && text.contains("no pair open"))
    }
  }

  test("a rank that aborted its result is named with its reason") {
    ResultFiles(2) { files =>
      files.seal(0, Seq(1L))
      BlockFileBytes.write(files.unsealed(1),
        BlockFileBytes.aborted(ResultFiles.bytes(1, Nil), "no such label: 11"))
      assert(
        refusal[RankEndedException](files) == "rank 1 aborted its result 'r': no such label: 11")
    }
  }

  test("a rank that died before it sealed is named") {
    ResultFiles(1) { files =>
      BlockFileBytes.write(files.unsealed(0), ResultFiles.bytes(0, Seq(1L)))
      assert(refusal[RankEndedException](files).startsWith(
          "rank 0 died before it sealed its result 'r'"))
    }
  }

  test("a file that its rank has just created is waited for") {
    ResultFiles(1) { files =>
      val created = BlockFileBytes.write(files.unsealed(0), Array.emptyByteArray)
      assert(refusal[RankException](files, "timeout" -> 0.5).contains(
          s"${created.getFileName}, which is empty"))
      val loading = inBackground(files.load(spark))
      intercept[java.util.concurrent.TimeoutException](loading.get(1, TimeUnit.SECONDS))
      Files.delete(created)
      files.seal(0, Seq(1L))
      assert(ids(result(loading)) == Seq(1))
    }
  }

  test("files of different runs are refused; a rank without a run fits any") {
    ResultFiles(3) { files =>
      def write(rank: Int, run: Long) =
        BlockFileBytes.write(files.path(rank), ResultFiles.bytes(rank, Seq(rank), run = run))
      Seq(7L, 0L, 7L).zipWithIndex.foreach { case (run, rank) => write(rank, run) }
      assert(ids(files.load(spark)) == Seq(0, 1, 2))
      write(1, run = -8)
      assert(refusal[ContractException](files).startsWith(
          "the ranks 0, 2 and 1 of the result 'r' are of different runs"))
    }
  }

  test("ranks with other columns, and the file of another rank, are refused") {
    ResultFiles(2) { files =>
      files.seal(0, Seq(1L))
      BlockFileBytes.write(files.path(1),
        BlockFileBytes(Schema(IndexedSeq(Column("id", "i"))), Nil, rank = 1))
      val text = refusal[ContractException](files)
      assert(text.contains("rank 0 has id l, label u; rank 1 has id i"))
      BlockFileBytes.write(files.path(1), ResultFiles.bytes(0, Nil))
      assert(refusal[PlacementException](files).contains("is of MPI rank 0, not 1"))
    }
  }

  test("a damaged file is refused in load() or when it is read, with file and field") {
    ResultFiles(1) { files =>
      val bytes = ResultFiles.bytes(0, 0L until 300)
      val inHeader = bytes.clone
      inHeader(supply.protocol.Layout.MappedFileHeader.blockCount) = 7
      BlockFileBytes.write(files.path(0), inHeader)
      assert(refusal[ContractException](files).contains("block_count"))
      val inBlock = bytes.clone
      inBlock(supply.protocol.Layout.Constant.RING_OFFSET + 4096) = 0
      BlockFileBytes.write(files.path(0), inBlock)
      val data = files.load(spark)
      val text = intercept[Exception](data.collect()).getMessage
      assert(text.contains(s"${files.path(0)}: block 1: generation"))
    }
  }

  test("wrong options are refused by name") {
    ResultFiles(1) { files =>
      files.seal(0, Seq(1L))
      def refused(text: String, options: (String, Any)*): Unit =
        assert(refusal[ConfigException](files, options: _*).contains(text))
      refused("'../r' is no name of a result", "results" -> "../r")
      refused("ranks is 0", "ranks" -> 0)
      refused("timeout is 0.0", "timeout" -> 0)
      refused("'here' is not an absolute path", "results-folder" -> "here")
      refused("--epochs", "epochs" -> 2)
      refused("takes no path", "path" -> "/somewhere")
      assert(intercept[ConfigException](files.reader(spark).schema("id bigint").load()).getMessage
          .contains("read it without schema()"))
      val noName = spark.read.format("supply").option("mapped-files", "m")
      assert(
        intercept[ConfigException](noName.load()).getMessage.contains("option(\"results\", NAME)"))
    }
  }

  test("a task on another node is tried again, and at last names the right node") {
    ResultFiles(1) { files =>
      files.seal(0, Seq(1L))
      val reading = SessionResults.reading(sc)
      val found = FoundResult(0, "192.0.2.1", ResultPath(files.path(0).toString, None),
        BlockFileBytes.Generation, 0, 1, 1, 1, ResultFiles.schema)
      val texts = sc.range(0, 1, 1, 1).map { _ =>
        (0 until PlacedTask.Limit).map { _ =>
          try new ResultsReader(found, Array(0), reading).toString
          catch {
            case e: RuntimeException => s"${e.getClass.getSimpleName} ${e.getMessage}${reason(e)}"
          }
        }
      }.collect().head
      assert(texts.init.forall(_.startsWith("TaskKilledException")))
      assert(texts.forall(_.contains("landed on localhost, but its file is on 192.0.2.1")))
      assert(texts.last.startsWith("PlacementException"))
    }
  }

  test("results-folder is where the files are looked for") {
    ResultFiles(1) { files =>
      val folder = Files.createDirectory(files.folder.resolve("disk"))
      Files.move(files.seal(0, Seq(1L)), folder.resolve(files.path(0).getFileName))
      assert(ids(files.load(spark, "results-folder" -> folder)) == Seq(1L))
    }
  }
}

private object ResultsSuite {
  def reason(e: Throwable): String = e match {
    case killed: TaskKilledException => killed.reason
    case _ => ""
  }
}
