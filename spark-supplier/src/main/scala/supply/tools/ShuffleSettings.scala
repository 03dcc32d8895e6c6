package supply.tools

import java.io.InputStreamReader
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}
import java.util.Properties

import org.apache.hadoop.conf.Configuration
import org.apache.spark.SparkConf

/**
 * Checks Spark's own settings for its shuffle on this node, without starting Spark.
 * docs/design/benchmarks.md has the measurements of the prices, with their conditions.
 */
private[tools] final class ShuffleSettings(
    conf: SparkConf,
    environment: Map[String, String],
    storageOf: Path => Storage = Storage.of(_),
    isolationOf: Path => Option[String] = Storage.isolation(_)) {
  import ShuffleSettings._

  private val origin = new SettingOrigin(conf, SettingOrigin.defaultsFile(environment))
  private lazy val usesOldProtocol = conf.getBoolean(OldProtocol, defaultValue = false)

  def findings: Seq[Finding] =
    try {
      LocalDirs.of(conf, environment) match {
        case Left(why) =>
          Seq(hostLocal, Finding("skipped", "local dirs", s"not known here: $why", OnTheNode),
            partitions)
        case Right(dirs) if dirs.folders.isEmpty =>
          Seq(hostLocal,
            Finding("failed", "local dirs",
              s"${dirs.origin} is set and names no folder: Spark does not start", OwnDisk),
            partitions)
        case Right(dirs) =>
          val storages = dirs.folders.map(folder => folder -> storageOf(folder))
          (hostLocal +: storages.map { case (folder, storage) =>
            localDir(folder, dirs, storage)
          }) ++
            ignored(dirs) ++ shared(dirs) ++
            (if (storages.forall(_._2 == Storage.Memory)) Some(compression) else None) :+ partitions
      }
    } catch { case e: IllegalArgumentException => Seq(Finding("failed", "settings", e.getMessage)) }

  private def hostLocal: Finding = {
    val setting = origin.text(ReadHostLocalDisk, "true")
    if (usesOldProtocol)
      Finding("warning", "host-local",
        s"${origin.text(OldProtocol, "false")}: executors of one node send blocks to each other over TCP. $HostLocalPrice",
        s"remove it, unless the external shuffle service is older than Spark 3.0: then $ReadHostLocalDisk has no effect")
    else if (!readsHostLocal)
      Finding("warning", "host-local",
        s"$setting: executors of one node send blocks to each other over TCP. $HostLocalPrice",
        s"remove it: true is Spark's default. With one executor on each node it makes no difference")
    else Finding("ok", "host-local",
      s"$setting: an executor reads blocks of others on its node from their files")
  }

  private def readsHostLocal: Boolean =
    !usesOldProtocol && conf.getBoolean(ReadHostLocalDisk, defaultValue = true)

  private def localDir(folder: Path, dirs: LocalDirs, storage: Storage): Finding = {
    val text = s"$folder (${dirs.origin}) is on ${storage.text}"
    storage match {
      case Storage.Memory | _: Storage.SolidState => Finding("ok", "local dirs", text)
      case _: Storage.Network =>
        Finding("warning", "local dirs",
          s"$text: each block crosses the network twice. How much time that costs is not measured",
          OwnDisk)
      case _: Storage.Rotating => Finding("warning", "local dirs", s"$text. $DiskPrice", OwnDisk)
      case Storage.Unknown(why) =>
        Finding("skipped", "local dirs",
          s"$folder (${dirs.origin}): it is not known how fast it is: $why",
          s"measure how fast it is. $DiskPrice")
    }
  }

  private def ignored(dirs: LocalDirs): Option[Finding] =
    dirs.ignored.filterNot(_ == dirs.folders.mkString(",")).map(_ =>
      Finding("warning", "local dirs",
        s"${origin.text("spark.local.dir", "")} has no effect: ${dirs.origin} overrides it",
        s"set ${dirs.origin} instead. launch/ sets SPARK_LOCAL_DIRS to TMPDIR if it is not set"))

  /** A folder of one executor only makes fetches fail, and does not make them slow. */
  private def shared(dirs: LocalDirs): Option[Finding] =
    if (!readsHostLocal) None
    else dirs.folders.flatMap(folder =>
      isolationOf(folder).map(why => s"$folder: $why")).headOption.map(text =>
      Finding("skipped", "shared dirs",
        s"$text. It is not known whether all executors of this node see the same folder. If not, fetches between them fail",
        s"mount one folder of the host in all of them, or set $ReadHostLocalDisk=false"))

  /** Neither value is wrong: measurements in memory showed no price of lz4. */
  private def compression: Finding = {
    val settings = Seq("spark.shuffle.compress", "spark.shuffle.spill.compress").map(
      origin.text(_, "true"))
    Finding("ok", "compression",
      s"${settings.mkString(", ")}: blocks lie in memory. $CompressionPrice")
  }

  /** The size of the data is not known: a task that reads a whole split of a file stands for it. */
  private def partitions: Finding = {
    val count = conf.getInt(ShufflePartitions, DefaultPartitions)
    val split = conf.getSizeAsBytes(SplitBytes, "128m")
    val block = split / math.max(1, count)
    val text =
      s"${origin.text(ShufflePartitions, DefaultPartitions.toString)}: a task that reads ${split >> 20} MiB " +
        s"($SplitBytes) writes blocks of about ${block >> 10} KiB"
    if (block >= SmallBlock) Finding("ok", "partitions", text)
    else if (Coalescing.forall(conf.getBoolean(_, defaultValue = true)) && readsBatches)
      Finding("ok", "partitions",
        s"$text. Spark coalesces small partitions, and reads their blocks together")
    else Finding("warning", "partitions", s"$text. $PartitionsPrice",
      s"set $ShufflePartitions to at most ${math.max(1,
          split / SmallBlock)}, or ${Coalescing.mkString(" and ")} to true")
  }

  /** Blocks that lie side by side in a file are fetched as one. */
  private def readsBatches: Boolean =
    !usesOldProtocol && !conf.getBoolean("spark.io.encryption.enabled", defaultValue = false)
}

private object ShuffleSettings {
  private val ReadHostLocalDisk = "spark.shuffle.readHostLocalDisk"
  private val OldProtocol = "spark.shuffle.useOldFetchProtocol"
  private val ShufflePartitions = "spark.sql.shuffle.partitions"
  private val SplitBytes = "spark.sql.files.maxPartitionBytes"
  private val Coalescing =
    Seq("spark.sql.adaptive.enabled", "spark.sql.adaptive.coalescePartitions.enabled")
  private val DefaultPartitions = 200
  private val SmallBlock = 64L << 10

  private val OnTheNode = "run launch/supply-doctor on a node, in the environment of its executors"
  private val OwnDisk =
    "name a folder on a solid-state disk of this node, or in /dev/shm if the node has the memory (SPARK_LOCAL_DIRS)"

  private val HostLocalPrice =
    "Measured with 128 MiB and 2 GB on one machine: the stage that reads takes 1.0 to 1.4 times as long"
  private val DiskPrice =
    "How much time a slow disk costs is not measured: it depends on the disk, and on how much of the blocks stays in memory"
  private val CompressionPrice =
    "Measured with 128 MiB: a job with lz4 takes 0.9 to 1.1 times as long as one without (0.6 to 1.3 in single rounds)"
  private val PartitionsPrice =
    "Measured with 128 MiB: a job takes 2.3 times as long with 256 partitions as with 16, and 12.6 times with 2,048"
}

/** Where a setting's value comes from, for people: spark-submit passes all of them on alike. */
private[tools] final class SettingOrigin(conf: SparkConf, defaultsFile: Option[Path]) {
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

private[tools] object SettingOrigin {
  /** The file that spark-submit reads, by the environment that its scripts set. */
  def defaultsFile(environment: Map[String, String]): Option[Path] =
    environment.get("SPARK_CONF_DIR").orElse(environment.get("SPARK_HOME").map(_ + "/conf")).map(
      Path.of(_, "spark-defaults.conf"))
}

/**
 * The folders for Spark's shuffle and spill files. `origin`: the setting that names them. `ignored`:
 * a value of spark.local.dir that this setting overrides.
 */
private[tools] final case class LocalDirs(
    folders: Seq[Path], origin: String, ignored: Option[String])

private[tools] object LocalDirs {
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
