package supply.tools

import org.apache.spark.SparkConf
import org.apache.spark.supply.SparksLocalDirs
import org.scalatest.funsuite.AnyFunSuite

final class LocalDirsSuite extends AnyFunSuite {
  private val setting = Map("spark.local.dir" -> "/setting/1,/setting/2")
  private val ofUser = Map("SPARK_LOCAL_DIRS" -> "/user/1,/user/2")
  private val ofWorker = Map("SPARK_EXECUTOR_DIRS" -> "/worker/1:/worker/2")
  private val ofYarn = Map("CONTAINER_ID" -> "container_1", "LOCAL_DIRS" -> "/yarn/1,/yarn/2")

  for ((settings, environment, origin) <- Seq(
      (Map.empty[String, String], Map.empty[String, String], "java.io.tmpdir"),
      (setting, Map.empty[String, String], "spark.local.dir"),
      (setting, ofUser, "SPARK_LOCAL_DIRS"),
      (setting, ofUser ++ ofWorker, "SPARK_EXECUTOR_DIRS"),
      (setting, ofUser ++ ofWorker ++ ofYarn, "LOCAL_DIRS"),
      (setting, ofUser ++ ofWorker + ("LOCAL_DIRS" -> "/not/a/container"), "SPARK_EXECUTOR_DIRS")))
    test(s"they are Spark's own: $origin of ${(settings ++ environment).keys.mkString(", ")}") {
      val conf = new SparkConf(false).setAll(settings)
      val found = LocalDirs.ofProcess(conf, environment)
      assert(found.origin == origin)
      // Spark shuffles those of YARN.
      assert(found.folders.map(_.toString).toSet == SparksLocalDirs.of(settings, environment).toSet)
      assert(found.ignored == (if (origin == "spark.local.dir") None
                               else settings.get("spark.local.dir")))
    }
}
