package supply.api

import org.apache.spark.sql.SparkSession
import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException
import supply.results.OpenResults
import supply.testing.{LocalSpark, ResultFiles}

/** When the files of a result are removed and unmapped, and when they are not. */
class ReleaseSuite extends AnyFunSuite with LocalSpark {
  private def spark = SparkSession.builder().config(sc.getConf).getOrCreate()

  private def isOpen(files: ResultFiles): Boolean =
    OpenResults.paths.exists(_.startsWith(files.folder))

  test("release removes the files and unmaps them; what reads them later is told") {
    ResultFiles(2) { files =>
      files.seal(0, 0L until 300)
      files.seal(1, Seq(300L))
      val data = files.load(spark)
      val doubled = data.selectExpr("id * 2 as twice")
      assert(data.count() == 301 && isOpen(files))
      Results.release(doubled)
      assert(files.left.isEmpty && !isOpen(files))
      assert(intercept[Exception](data.count()).getMessage.contains("the result was released"))
      Results.release(data)
    }
  }

  test("release of a DataFrame without results is refused") {
    assert(intercept[ConfigException](Results.release(spark.range(1).toDF())).getMessage.contains(
        "nothing to release"))
  }

  test("a result of a later run under the same name is not removed") {
    ResultFiles(1) { files =>
      files.seal(0, Seq(1L))
      val data = files.load(spark)
      supply.testing.BlockFileBytes.write(files.path(0),
        supply.testing.BlockFileBytes(
          ResultFiles.schema, Seq(Seq(Seq(2L), Seq("2"))), generation = 99))
      assert(intercept[Exception](data.count()).getMessage.contains("ranks have started anew"))
      Results.release(data)
      assert(files.left.size == 1)
      assert(files.load(spark).head().getLong(0) == 2)
    }
  }

  test("a garbage collection removes nothing: the files are there for a second load()") {
    ResultFiles(2) { files =>
      files.seal(0, 0L until 300)
      files.seal(1, Seq(300L))
      files.load(spark)
      files.load(spark).selectExpr("id * 2 as twice").count()
      collectGarbage()
      assert(files.left.size == 2)
      assert(files.load(spark).count() == 301)
      collectGarbage()
      val again = files.load(spark)
      assert(again.count() == 301)
      Results.release(again)
      assert(files.left.isEmpty)
    }
  }

  /** Spark itself refers to a plan for a while after its query. */
  private def collectGarbage(): Unit = (0 until 10).foreach { _ =>
    System.gc()
    Thread.sleep(300)
  }

  test("files go with the session") {
    ResultFiles(1) { files =>
      files.seal(0, Seq(1L))
      val data = files.load(spark)
      assert(data.count() == 1)
      sc.stop()
      assert(files.left.isEmpty && !isOpen(files))
    }
  }
}
