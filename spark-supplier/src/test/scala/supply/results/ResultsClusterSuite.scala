package supply.results

import java.io.IOException
import java.nio.channels.FileChannel
import java.nio.file.{FileAlreadyExistsException, Files, Path, Paths, StandardOpenOption}
import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import org.apache.spark.{ExceptionFailure, SparkException}
import org.apache.spark.scheduler.{SparkListener, SparkListenerTaskEnd}
import org.scalatest.concurrent.Eventually.{eventually, interval, timeout}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Millis, Seconds, Span}

import supply.api.Results
import supply.core.Deadline
import supply.testing.{LocalCluster, LongTest, ResultFiles, WithSpark}

/** Results with executors that are processes: killed, and removed while the session lives. */
class ResultsClusterSuite extends AnyFunSuite with WithSpark {
  import ResultsClusterSuite._

  private val ids = 0L until 2000

  private def withResult(ranks: Int)(
      body: ResultFiles => Unit): Unit = ResultFiles(ranks) { files =>
    ids.grouped(ids.size / ranks).zipWithIndex.foreach { case (some, rank) =>
      files.seal(rank, some)
    }
    body(files)
  }

  private def soon(body: => Any): Unit =
    eventually(timeout(Span(60, Seconds)), interval(Span(200, Millis)))(body)

  /** Processes that have a file of this folder mapped. */
  private def mapping(folder: Path): Seq[Long] =
    ProcessHandle.allProcesses().iterator.asScala.map(_.pid).filter { pid =>
      try Files.readString(Paths.get(s"/proc/$pid/maps")).contains(folder.toString)
      catch { case _: IOException => false }
    }.toSeq

  test("an executor is killed in the middle of a scan: every row is read once", LongTest) {
    withResult(ranks = 2) { files =>
      LocalCluster(2) { spark =>
        val data = files.load(spark, "timeout" -> 120)
        val once = files.folder.resolve("killed").toString
        val read = data.rdd.map { row =>
          if (row.getLong(0) == 777) killOnce(once)
          row.getLong(0) -> row.getString(1)
        }.collect()
        assert(Files.exists(Paths.get(once)))
        assert(read.toSeq.sorted == ids.map(id => id -> id.toString))
        assert(data.count() == ids.size && files.left.size == 2)
      }
    }
  }

  test("a file that is cut while it is read fails the job with its name", LongTest) {
    withResult(ranks = 1) { files =>
      // The JVM's error for the first attempt ends its executor. The next attempts cannot open the
      // file, or do not begin while that executor ends.
      LocalCluster(1) { spark =>
        val data = files.load(spark, "timeout" -> 120)
        val path = files.path(0).toString
        val failures = new ConcurrentLinkedQueue[String]
        spark.sparkContext.addSparkListener(new SparkListener {
          override def onTaskEnd(end: SparkListenerTaskEnd): Unit = end.reason match {
            case failure: ExceptionFailure =>
              failures.add(failure.fullStackTrace)
              ()
            case _ => ()
          }
        })
        intercept[SparkException](data.rdd.map { row =>
          if (row.getLong(0) == 50) cut(path)
          row.getLong(0)
        }.collect())
        soon(assert(failures.peek != null))
        assert(failures.peek.contains(s"$path was cut"), failures.peek)
      }
    }
  }

  test("executors of one node read the same file at the same time, each row once") {
    withResult(ranks = 1) { files =>
      LocalCluster(2) { spark =>
        val data = files.load(spark, "timeout" -> 120)
        val first = files.folder.resolve("first").toString
        // Each of the two tasks reads on only when the other one has begun.
        val read = data.union(data).rdd.mapPartitionsWithIndex { (partition, rows) =>
          assert(rows.hasNext)
          val begun = rows.next().getLong(0)
          awaitOther(s"$first.$partition", s"$first.${1 - partition}")
          Iterator(begun) ++ rows.map(_.getLong(0))
        }.collect()
        assert(read.toSeq.sorted == ids.flatMap(id => Seq(id, id)))
      }
    }
  }

  test("release reaches all executors of a node", LongTest) {
    withResult(ranks = 2) { files =>
      LocalCluster(2) { spark =>
        val data = files.load(spark, "timeout" -> 120)
        data.rdd.mapPartitions { rows => Thread.sleep(500); rows.map(_.getLong(0)) }.count()
        assert(mapping(files.folder).nonEmpty)
        Results.release(data)
        assert(files.left.isEmpty)
        soon(assert(mapping(files.folder).isEmpty))
      }
    }
  }

  test("an executor that goes leaves the files, and the session's end removes them", LongTest) {
    withResult(ranks = 1) { files =>
      LocalCluster(1) { spark =>
        val data = files.load(spark, "timeout" -> 120)
        val (id, pid) = LocalCluster.executors(spark, 1).head
        assert(mapping(files.folder) == Seq(pid))
        assert(spark.sparkContext.killExecutor(id))
        soon(assert(!ProcessHandle.of(pid).isPresent))
        assert(files.left.size == 1)
        spark.sparkContext.requestExecutors(1)
        assert(data.count() == ids.size)
      }
      soon(assert(files.left.isEmpty))
    }
  }
}

private object ResultsClusterSuite {
  def killOnce(marker: String): Unit =
    try {
      Files.createFile(Paths.get(marker))
      new ProcessBuilder("kill", "-KILL", ProcessHandle.current().pid().toString).start().waitFor()
      Thread.sleep(60000)
    } catch { case _: FileAlreadyExistsException => () }

  /** The header is left. */
  def cut(path: String): Unit = {
    val channel = FileChannel.open(Paths.get(path), StandardOpenOption.WRITE)
    try channel.truncate(65536)
    finally channel.close()
    ()
  }

  def awaitOther(mine: String, other: String): Unit = {
    Files.createFile(Paths.get(mine))
    assert(new Deadline(120).poll(20)(Files.exists(Paths.get(other))), s"$other has not begun")
  }
}
