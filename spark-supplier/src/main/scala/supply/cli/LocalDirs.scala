package supply.cli

import java.nio.file.{Path, Paths}

import org.apache.hadoop.conf.Configuration
import org.apache.spark.SparkConf

/**
 * The folders for Spark's shuffle and spill files. `origin`: the setting that names them. `ignored`:
 * a value of spark.local.dir that this setting overrides.
 */
private[cli] final case class LocalDirs(
    folders: Seq[Path], origin: String, ignored: Option[String])

private[cli] object LocalDirs {
  private val Setting = "spark.local.dir"

  /** Those of the executors on this node, or why they cannot be known. */
  def of(conf: SparkConf, environment: Map[String, String]): Either[String, LocalDirs] =
    conf.get("spark.master", "local") match {
      case master if master.startsWith("local") => Right(ofProcess(conf, environment))
      case "yarn" => Right(ofNodeManager(conf))
      case master if master.startsWith("spark://") =>
        Left(
          "each worker has its own: SPARK_LOCAL_DIRS, or spark.local.dir of its spark-defaults.conf")
      case master => Left(s"the executors of $master have their own")
    }

  /** In the order in which a process of Spark looks for them. */
  def ofProcess(conf: SparkConf, environment: Map[String, String]): LocalDirs = {
    def from(variable: String, separator: String) =
      environment.get(variable).map(text => (text.split(separator).toSeq, variable))
    val configured = conf.getOption(Setting)
    val (names, origin) = environment.get("CONTAINER_ID").flatMap(_ => from("LOCAL_DIRS", ","))
      .orElse(from("SPARK_EXECUTOR_DIRS", java.io.File.pathSeparator))
      .orElse(from("SPARK_LOCAL_DIRS", ","))
      .orElse(configured.map(text => (text.split(",").toSeq, Setting)))
      .getOrElse((Seq(System.getProperty("java.io.tmpdir")), "java.io.tmpdir"))
    LocalDirs(names.map(_.trim).filter(_.nonEmpty).map(Paths.get(_)), origin,
      if (origin == Setting) None else configured)
  }

  /** On YARN: as HADOOP_CONF_DIR of this process says. Each NodeManager has its own copy of it. */
  private def ofNodeManager(conf: SparkConf): LocalDirs = {
    val hadoop = new Configuration
    hadoop.addResource("yarn-site.xml")
    val names = hadoop.getTrimmedStrings("yarn.nodemanager.local-dirs",
      hadoop.get("hadoop.tmp.dir") + "/nm-local-dir")
    LocalDirs(names.toSeq.map(name => Paths.get(name.stripPrefix("file://"))),
      "yarn.nodemanager.local-dirs", conf.getOption(Setting))
  }
}
