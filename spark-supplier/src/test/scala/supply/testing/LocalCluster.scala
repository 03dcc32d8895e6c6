package supply.testing

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkConf, SparkContext, SparkEnv}
import org.apache.spark.sql.SparkSession

import supply.core.BuiltFor

/** A Spark whose executors are processes of their own, on this machine. */
object LocalCluster {
  /** Runs `body` with `executors` of them, each with one core. */
  def apply[A](executors: Int, settings: (String, String)*)(
      body: SparkSession => A): A = {
    val conf = new SparkConf()
      .setMaster(s"local-cluster[$executors,1,512]")
      .setAppName("local cluster")
      .set("spark.ui.enabled", "false")
      .set("spark.log.level", "WARN")
      .set("spark.executor.memory", "512m")
      // They live for seconds: an optimizing compiler costs more time than it saves.
      .set("spark.executor.defaultJavaOptions", "-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
      .set("spark.executor.extraClassPath", System.getProperty("java.class.path"))
      // The launcher would look for it in a folder in which Spark was built.
      .set("spark.executorEnv.SPARK_SCALA_VERSION",
        scala.util.Properties.versionNumberString.split('.').take(2).mkString("."))
      .setAll(settings)
    // Spark's workers take the folder of their programs from here.
    val before = Seq("spark.testing" -> "true", "spark.test.home" -> home.toString).map {
      case (name, value) => name -> Option(System.setProperty(name, value))
    }
    try {
      val sc = new SparkContext(conf)
      try body(SparkSession.builder().config(conf).getOrCreate())
      finally sc.stop()
    } finally before.foreach {
        case (name, Some(value)) => System.setProperty(name, value)
        case (name, None) => System.clearProperty(name)
      }
  }

  /** The processes of all executors that run a task, with their ids. */
  def executors(spark: SparkSession, count: Int): Map[String, Long] = {
    val sc = spark.sparkContext
    sc.range(0, 20L * count, 1, 4 * count).mapPartitions { _ =>
      Thread.sleep(100)
      Iterator(SparkEnv.get.executorId -> ProcessHandle.current().pid())
    }.collect().toMap
  }

  /** PySpark of this Spark's version, which `make build` installs. */
  private def home: Path = {
    val environment = Seq(s"../build/spark-${BuiltFor.sparkLine}/venv", "../build/venv")
      .map(Paths.get(_).toAbsolutePath.normalize).find(Files.isDirectory(_)).getOrElse(
        sys.error("there is no build/venv: make build"))
    val folders = Files.list(environment.resolve("lib"))
    try folders.iterator.asScala.map(_.resolve("site-packages/pyspark")).find(Files.isDirectory(_))
        .getOrElse(sys.error(s"$environment has no PySpark: make build"))
    finally folders.close()
  }
}
