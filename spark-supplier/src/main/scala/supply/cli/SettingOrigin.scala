package supply.cli

import java.io.InputStreamReader
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.Properties

import org.apache.spark.SparkConf

/** Where a setting's value comes from, for people: spark-submit passes all of them on alike. */
private[cli] final class SettingOrigin(conf: SparkConf, defaultsFile: Option[Path]) {
  private val defaults = new Properties
  defaultsFile.filter(Files.isRegularFile(_)).foreach { file =>
    // As Spark reads it: bytes that are not UTF-8 are replaced.
    val reader = new InputStreamReader(Files.newInputStream(file), UTF_8)
    try defaults.load(reader)
    finally reader.close()
  }

  /** "KEY=VALUE (origin)". `default`: Spark's own value. */
  def text(key: String, default: String): String = {
    val origin = conf.getOption(key) match {
      case None => "Spark's default"
      case Some(value) if Option(defaults.getProperty(key)).map(_.trim).contains(value) =>
        defaultsFile.get.toString
      case Some(_) => "--conf, or set by the program"
    }
    s"$key=${conf.get(key, default)} ($origin)"
  }
}

private[cli] object SettingOrigin {
  /** The file that spark-submit reads, by the environment that its scripts set. */
  def defaultsFile(environment: Map[String, String]): Option[Path] =
    environment.get("SPARK_CONF_DIR").orElse(environment.get("SPARK_HOME").map(_ + "/conf")).map(
      Path.of(_, "spark-defaults.conf"))
}
