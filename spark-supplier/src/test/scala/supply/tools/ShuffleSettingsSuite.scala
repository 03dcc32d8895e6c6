package supply.tools

import java.net.URLClassLoader
import java.nio.charset.StandardCharsets.ISO_8859_1
import java.nio.file.{Files, Path, Paths}

import org.apache.spark.SparkConf
import org.scalatest.funsuite.AnyFunSuite

import supply.testing.TemporaryFolder

final class ShuffleSettingsSuite extends AnyFunSuite {
  private val fast = Storage.SolidState("ext4", "nvme0n1")

  test("Spark's defaults on a fast disk are right") {
    val found = findings()()
    assert(found.map(_.status).toSet == Set("ok"), found)
    assert(found.map(_.check) == Seq("host-local", "local dirs", "partitions"))
    assert(found.head.text.contains("readHostLocalDisk=true (Spark's default)"))
  }

  for ((key, value) <- Seq("spark.shuffle.readHostLocalDisk" -> "false",
      "spark.shuffle.useOldFetchProtocol" -> "true"))
    test(s"$key=$value makes executors of a node use TCP") {
      val found = only("host-local", findings(key -> value)())
      assert(found.status == "warning" && found.text.contains(s"$key=$value (--conf"))
      assert(found.text.contains("Measured") && found.fix.contains("remove it"))
    }

  test("the file that names a setting is named") {
    TemporaryFolder { folder =>
      val file = Files.writeString(folder.resolve("spark-defaults.conf"),
        "# a comment\nspark.shuffle.readHostLocalDisk   false\nspark.sql.shuffle.partitions 8\n")
      val found = findings("spark.shuffle.readHostLocalDisk" -> "false",
        "spark.sql.shuffle.partitions" -> "9")(environment =
        Map("SPARK_CONF_DIR" -> folder.toString))
      assert(only("host-local", found).text.contains(s"($file)"))
      // A --conf wins over the file.
      assert(only("partitions", found).text.contains("partitions=9 (--conf"))
    }
  }

  test("a file of settings that is not UTF-8 is read as Spark reads it") {
    TemporaryFolder { folder =>
      val file = Files.write(folder.resolve("spark-defaults.conf"),
        "# für alle\nspark.shuffle.readHostLocalDisk false\n".getBytes(ISO_8859_1))
      val found = findings("spark.shuffle.readHostLocalDisk" -> "false")(environment =
        Map("SPARK_CONF_DIR" -> folder.toString))
      assert(only("host-local", found).text.contains(s"($file)"))
    }
  }

  for (value <- Seq("true", "false"))
    test(s"compression in memory has a price to compare, and no wrong value: $value") {
      assume(Files.getFileStore(Paths.get("/dev/shm")).`type`() == "tmpfs",
        "/dev/shm is no tmpfs here")
      val found = only("compression",
        findings("spark.shuffle.compress" -> value)(
          environment = Map("SPARK_LOCAL_DIRS" -> "/dev/shm"), storageOf = Storage.of(_)))
      assert(found.status == "ok" && found.text.contains("Measured"))
      assert(found.text.contains(s"spark.shuffle.compress=$value (--conf"))
    }

  test("compression is not judged if a folder is on a disk") {
    val found = findings()(Map("SPARK_LOCAL_DIRS" -> "/dev/shm,/data"),
      folder => if (folder.startsWith("/dev/shm")) Storage.Memory else fast)
    assert(!found.exists(_.check == "compression"))
    assert(found.count(_.check == "local dirs") == 2)
  }

  test("no folder") {
    val found = findings()(environment = Map("SPARK_LOCAL_DIRS" -> ""))
    assert(only("local dirs", found).status == "failed")
    assert(only("local dirs", found).text.startsWith("SPARK_LOCAL_DIRS is set and names no folder"))
    assert(!found.exists(_.check == "compression"))
  }

  test("slow and unknown folders") {
    for ((storage, status) <- Seq(Storage.Network("nfs4") -> "warning",
        Storage.Rotating("xfs", "sda") -> "warning", Storage.Unknown("a riddle") -> "skipped")) {
      val found = only("local dirs", findings()(storageOf = _ => storage))
      assert(found.status == status && found.fix.nonEmpty, found)
    }
    assert(only("local dirs", findings()(storageOf = _ => Storage.Network("nfs4"))).text.contains(
        "(nfs4)"))
  }

  test("a variable that overrides spark.local.dir") {
    def about(variable: String) = findings("spark.local.dir" -> "/data/spark")(
      Map("SPARK_LOCAL_DIRS" -> variable)).filter(_.text.contains("has no effect"))
    assert(about("/scratch").map(_.status) == Seq("warning"))
    assert(about("/scratch").head.text.contains("SPARK_LOCAL_DIRS overrides it"))
    assert(about("/data/spark").isEmpty)
    assert(only("local dirs", findings("spark.local.dir" -> "/data/spark")(Map.empty))
        .text.startsWith("/data/spark (spark.local.dir)"))
  }

  test("folders that other executors may not see") {
    val isolated = findings()(isolationOf = _ => Some("it is a container's own"))
    assert(only("shared dirs", isolated).status == "skipped")
    // Over TCP no executor needs the folder of another one.
    assert(!findings("spark.shuffle.readHostLocalDisk" -> "false")(
        isolationOf = _ => Some("it is a container's own")).exists(_.check == "shared dirs"))
  }

  for ((partitions, split, adaptive, status) <- Seq((200, "128m", false, "ok"),
      (4096, "128m", false, "warning"), (4096, "128m", true, "ok"), (4096, "1g", false, "ok"),
      (1, "128m", false, "ok")))
    test(s"$partitions partitions of splits of $split, adaptive: $adaptive") {
      val found = only("partitions",
        findings("spark.sql.shuffle.partitions" -> partitions.toString,
          "spark.sql.files.maxPartitionBytes" -> split,
          "spark.sql.adaptive.enabled" -> adaptive.toString)())
      assert(found.status == status, found)
      assert(found.text.contains("Measured") == (status == "warning"))
    }

  test("encrypted blocks are not read together") {
    val found = only("partitions",
      findings("spark.sql.shuffle.partitions" -> "4096",
        "spark.io.encryption.enabled" -> "true")())
    assert(found.status == "warning")
  }

  test("a value that Spark cannot read") {
    val found = findings("spark.shuffle.readHostLocalDisk" -> "maybe")()
    assert(found.map(_.status) == Seq("failed") && found.head.text.contains("readHostLocalDisk"))
  }

  test("the folders of executors elsewhere are not known") {
    for (master <- Seq("spark://node-1:7077", "k8s://https://node-1")) {
      val found = only("local dirs", findings("spark.master" -> master)())
      assert(found.status == "skipped" && found.fix.contains("on a node"))
    }
  }

  test("on YARN the folders are the NodeManager's") {
    TemporaryFolder { folder =>
      Files.writeString(folder.resolve("yarn-site.xml"),
        "<configuration><property><name>yarn.nodemanager.local-dirs</name>" +
          "<value>file:///data/1/yarn, /data/2/yarn</value></property></configuration>")
      val before = Thread.currentThread.getContextClassLoader
      val withFile = new URLClassLoader(Array(folder.toUri.toURL), before)
      Thread.currentThread.setContextClassLoader(withFile)
      try {
        val found = findings("spark.master" -> "yarn", "spark.local.dir" -> "/ignored")()
        val texts = found.filter(_.check == "local dirs").map(_.text)
        assert(texts(0).startsWith("/data/1/yarn (yarn.nodemanager.local-dirs)"))
        assert(texts(1).startsWith("/data/2/yarn"))
        assert(texts(2).contains("has no effect: yarn.nodemanager.local-dirs"))
      } finally {
        Thread.currentThread.setContextClassLoader(before)
        withFile.close()
      }
    }
  }

  private def findings(settings: (String, String)*)(
      environment: Map[String, String] = Map("SPARK_LOCAL_DIRS" -> "/data"),
      storageOf: Path => Storage = _ => fast,
      isolationOf: Path => Option[String] = _ => None): Seq[Finding] =
    new ShuffleSettings(new SparkConf(false).setAll(settings), environment, storageOf, isolationOf)
      .findings

  private def only(check: String, found: Seq[Finding]): Finding =
    found.filter(_.check == check) match {
      case Seq(one) => one
      case others => fail(s"$check: $others in $found")
    }
}
