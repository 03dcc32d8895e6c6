package supply.datasource

import java.util.concurrent.{Semaphore, TimeUnit, TimeoutException}

import org.apache.spark.sql.SparkSession
import org.scalatest.concurrent.Eventually.{eventually, interval, timeout}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Millis, Seconds, Span}

import supply.Results
import supply.core.{ConfigException, RankException}
import supply.results.OpenResults
import supply.testing.Background.{inBackground, result}
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

  test("files go when no DataFrame refers to them, and not before") {
    ResultFiles(1) { files =>
      files.seal(0, Seq(1L))
      files.load(spark)
      val kept = files.load(spark)
      System.gc()
      assert(kept.count() == 1 && files.left.size == 1)
    }
    ResultFiles(1) { files =>
      files.seal(0, Seq(1L))
      files.load(spark).count()
      eventually(timeout(Span(60, Seconds)), interval(Span(200, Millis))) {
        System.gc()
        assert(files.left.isEmpty)
      }
    }
  }

  test("files that are being removed are not found") {
    ResultFiles(1) { files =>
      files.seal(0, Seq(1L))
      files.load(spark)
      sc.parallelize(0 until slots, slots).foreachAsync(_ => ReleaseSuite.free.acquire())
      val loading =
        try {
          // The removal waits for a core.
          eventually(timeout(Span(60, Seconds)), interval(Span(200, Millis))) {
            System.gc()
            assert(sc.statusTracker.getActiveJobIds().length == 2)
          }
          val loading = inBackground(files.load(spark, "timeout" -> 1))
          assertThrows[TimeoutException](loading.get(1, TimeUnit.SECONDS))
          loading
        } finally ReleaseSuite.free.release(slots)
      assert(intercept[RankException](result(loading)).getMessage.contains("no file of 'r'"))
    }
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

private object ReleaseSuite {
  val free = new Semaphore(0)
}
