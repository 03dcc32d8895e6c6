package supply.api

import java.nio.file.Files

import org.apache.spark.sql.SparkSession
import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException
import supply.testing.{LocalCluster, LocalSpark, TemporaryFolder}

class StartersSuite extends AnyFunSuite with LocalSpark {
  private def starters(spark: SparkSession, number: Any) =
    spark.read.format("supply").option("starters", number.toString).load()

  private def rows(spark: SparkSession, number: Int) =
    starters(spark, number).collect().map(row => row.toSeq.map(_.toString)).toSeq

  private lazy val spark = SparkSession.builder().config(sc.getConf).getOrCreate()

  test("each starter says where it runs") {
    val read = starters(spark, 3)
    assert(read.columns.toSeq == Seq("host", "executor", "threads", "gpus"))
    assert(read.rdd.getNumPartitions == 3)
    val here = Seq(sc.getConf.get("spark.driver.host"), "driver",
      sys.env.getOrElse("OMP_NUM_THREADS", ""), "")
    assert(rows(spark, 3) == Seq.fill(3)(here))
  }

  test("a number of starters that makes no sense, other options and a schema are refused") {
    Seq("0", "-1", "many", "").foreach(number =>
      assert(intercept[ConfigException](starters(spark, number)).getMessage.contains("starters"),
        number))
    assert(intercept[ConfigException](spark.read.format("supply").option("starters", "1")
          .option("ranks", "1").load()).getMessage.contains("--ranks"))
    assert(intercept[ConfigException](spark.read.format("supply").option("starters", "1")
          .schema("host string").load()).getMessage.contains("without schema()"))
  }
}

/** Starters in executors that are processes. */
class StartersClusterSuite extends AnyFunSuite {
  private def starters(spark: SparkSession) = {
    LocalCluster.executors(spark, 1)
    spark.read.format("supply").option("starters", "3").load().collect().map(
      _.toSeq.map(_.toString))
  }

  test("starters are computed in the executors' processes, with their environment and GPUs") {
    TemporaryFolder { folder =>
      val script = Files.writeString(folder.resolve("gpus"),
        "#!/bin/sh\necho '{\"name\": \"gpu\", \"addresses\": [\"3\", \"5\"]}'\n")
      script.toFile.setExecutable(true)
      LocalCluster(1, "spark.executorEnv.OMP_NUM_THREADS" -> "3",
        "spark.worker.resource.gpu.amount" -> "2",
        "spark.worker.resource.gpu.discoveryScript" -> script.toString,
        "spark.executor.resource.gpu.amount" -> "2", "spark.task.resource.gpu.amount" -> "2") {
        spark =>
          val hosts = spark.sparkContext.statusTracker.getExecutorInfos.map(_.host()).toSeq
          val rows = starters(spark)
          assert(hosts.contains(rows.head.head))
          assert(rows.toSeq == Seq.fill(3)(Seq(rows.head.head, "0", "3", "3,5")))
      }
    }
  }
}
