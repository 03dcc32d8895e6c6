package supply.tools

import java.nio.file.Files

import org.scalatest.funsuite.AnyFunSuite
import picocli.CommandLine

import supply.pair.ConfigFiles
import supply.plan.Hostfile
import supply.run.ContainerMemory
import supply.testing.TemporaryFolder

class SubmissionOptionsSuite extends AnyFunSuite {

  private def parse(arguments: String*): SubmissionOptions = {
    val options = new SubmissionOptions
    new CommandLine(options).parseArgs(Seq("--lmdb", "/db", "--mapped-files", "m", "--named-pipes",
        "n") ++ arguments: _*)
    options
  }

  test("Spark's settings are taken as spark-submit takes them") {
    val conf = parse("--conf", "spark.a=1", "--conf=spark.b=-Dx=\"1 2\" -Dy=", "--conf",
      "spark.a=2", "--conf", "spark.c=",
      "--conf", "spark.executor.memory=1g", "--ranks", "3").conf("4g")
    assert(Seq("spark.a", "spark.b", "spark.c", "spark.executor.memory").map(conf.get(_)) == Seq(
      "2", "-Dx=\"1 2\" -Dy=", "", "4g"))
  }

  test(
    "the overhead is what the mapped files need plus Spark's own default with the settings of this run") {
    TemporaryFolder { folder =>
      Files.writeString(folder.resolve("m"), "/dev/shm/pair ring=64KiB block=4096\n")
      Files.writeString(folder.resolve("n"), "/dev/shm/request /dev/shm/notification\n")
      val files = ConfigFiles(folder.resolve("m").toString, folder.resolve("n").toString)
      def overhead(memory: String, settings: String*) =
        ContainerMemory.overheadMiB(parse(settings.map("--conf=" + _): _*).conf(memory), files,
          Hostfile.oneNode(1))
      val mapped = overhead("4g") - 409
      assert(mapped > 0)
      assert(overhead("4g", "spark.executor.memoryOverheadFactor=0.3") == mapped + 1228)
      assert(overhead("1g", "spark.executor.minMemoryOverhead=512m") == mapped + 512)
    }
  }
}
