package supply.lmdb

import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException

class LmdbOptionsSuite extends AnyFunSuite {

  private def failure(options: (String, String)*): String =
    intercept[ConfigException](LmdbOptions.parse(options.toMap)).getMessage

  test("the options set the cache of an LMDB in HDFS") {
    val options = LmdbOptions.parse(Map("path" -> "hdfs:///a", "lmdb-cache" -> "/cache",
        "lmdb-cache-size" -> "2GiB", "timeout" -> "7"))
    assert(options.cache.settings(options.timeout) == CacheSettings("/cache", Some(2L << 30), 7))
    assert(options.partitions == null)
  }

  test("the ranks read in place if a boolean says so, in any spelling") {
    def inPlace(options: (String, String)*): Boolean =
      LmdbOptions.parse((("path" -> "/a") +: options).toMap).inPlace
    assert(!inPlace() && !inPlace("inPlace" -> "false"))
    // Spark's readers pass on names in lower case.
    Seq("inPlace", "inplace", "in-place").foreach(name => assert(inPlace(name -> "true")))
    assert(failure("path" -> "/a", "inplace" -> "yes").contains("'yes' is not a boolean"))
  }

  test("keys to skip are a list, under any form of the option's name") {
    Seq("skipKeys", "skipkeys", "skip-keys").foreach(name =>
      assert(LmdbOptions.parse(Map("path" -> "/a", name -> "a b,c")).keysToSkip == Seq("a b", "c")))
    assert(LmdbOptions.parse(Map("path" -> "/a")).keysToSkip.isEmpty)
  }

  test("a cache is for an LMDB in HDFS, and has a folder of the user if none is named") {
    Seq("lmdb-cache" -> "/cache", "lmdb-cache-size" -> "2GiB").foreach { option =>
      val cache = LmdbOptions.parse(Map("path" -> "/a", option)).cache
      assert(intercept[ConfigException](cache.refuseFor("/a")).getMessage.startsWith(
          s"--${option._1} is for copies of an LMDB in HDFS, and /a is read where it lies"))
    }
    val usual = LmdbOptions.parse(Map("path" -> "/a")).cache
    usual.refuseFor("/a")
    assert(usual.settings(1).folder == s"/var/tmp/supply-cache-${java.nio.file.Files.getOwner(
        java.nio.file.Path.of("/proc/self"))}")
  }

  test("a wrong or missing option is named") {
    assert(failure().contains("union() the frames of several"))
    assert(failure("path" -> "/a", "partitions" -> "0").contains(
        "partitions is 0: it must be at least 1"))
    assert(failure("path" -> "/a", "partitions" -> "many").contains("--partitions"))
    assert(failure("path" -> "/a", "timeout" -> "0").contains(
        "timeout is 0.0: it must be above 0 seconds"))
    Seq("lmdb-cach" -> "--lmdb-cache", "partition" -> "--partitions",
      "numpartitions" -> "--partitions",
      "timout" -> "--timeout", "skipkey" -> "--skipKeys").foreach { case (given, meant) =>
      assert(failure("path" -> "/a", given -> "3").contains(s"did you mean $meant? ("))
    }
    Seq("shuffle", "x").foreach(given =>
      assert(!failure("path" -> "/a", given -> "3").contains("did you mean")))
    assert(intercept[ConfigException](LmdbOptions.parse(Map("path" -> "/a",
            "lmdb-cache-size" -> "big")).cache.settings(1)).getMessage
        .contains("--lmdb-cache-size 'big' is not a size"))
  }
}
