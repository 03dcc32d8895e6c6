package supply.lmdb

import java.nio.file.{Files, Paths}

import org.scalatest.funsuite.AnyFunSuite
import picocli.CommandLine
import picocli.CommandLine.ParameterException

import supply.core.{ConfigException, UsageError}
import supply.plan.Shuffle
import supply.run.{ResumePositions, RunOptions}
import supply.task.SupplySettings
import supply.tools.OptionsReference

class SupplierOptionsSuite extends AnyFunSuite {
  private val needed = Seq("--lmdb", "/db", "--mapped-files", "m", "--named-pipes", "n")

  private def parse(arguments: String*): SupplierOptions = {
    val options = new SupplierOptions
    new CommandLine(options).parseArgs(arguments: _*)
    options
  }

  private def failure(arguments: String*): String =
    UsageError.text(intercept[ParameterException](parse(arguments: _*)))

  test("options that are not given have their defaults") {
    val options = parse(needed: _*)
    assert(options.partitions == null)
    assert(options.run.settings == SupplySettings(ranks = 1, mappedFiles = "m", namedPipes = "n"))
  }

  test("an unknown option is refused with the nearest name") {
    val message = failure(needed :+ "--partition" :+ "3": _*)
    assert(message.contains("--partition") && message.contains("did you mean --partitions?"))
  }

  test("a missing option and a wrong value are named") {
    assert(failure("--lmdb", "/db").contains("--mapped-files"))
    assert(failure(needed ++ Seq("--ranks", "two"): _*).contains("--ranks"))
  }

  test("a DataFrame's writer has the same options, without their dashes") {
    val options = Map("mapped-files" -> "m", "named-pipes" -> "n", "ranks" -> "4",
      "block-elements" -> "32", "resident" -> "true",
      "resume-positions" -> "no-position,no-position")
    assert(RunOptions.parse(options).settings ==
      SupplySettings(ranks = 4, mappedFiles = "m", namedPipes = "n", blockElements = Some(32),
        resident = true, resumePositions = Some("no-position,no-position")))
    val message =
      intercept[ConfigException](RunOptions.parse(options + ("epoch" -> "3")).settings).getMessage
    assert(message.endsWith("did you mean --epochs? (docs/RANKS.md lists the options)"))
  }

  test("--shuffle all has a fraction, in millionths; a DataFrame's writer has it, too") {
    def shuffle(arguments: String*) = parse(needed ++ arguments: _*).run.settings.shuffle
    assert(shuffle("--shuffle", "all") == Shuffle.All(1000000))
    assert(shuffle("--shuffle", "all", "--exchange-fraction", "1") == Shuffle.All(1000000))
    assert(shuffle("--shuffle=all", "--exchange-fraction=0.25") == Shuffle.All(250000))
    assert(shuffle("--shuffle=all", "--exchange-fraction=1e-6") == Shuffle.All(1))
    val options = Map("mapped-files" -> "m", "named-pipes" -> "n", "shuffle" -> "all",
      "exchange-fraction" -> "0.5")
    assert(RunOptions.parse(options).settings.shuffle == Shuffle.All(500000))
  }

  test("a fraction that cannot be exchanged is refused, and one without an exchange") {
    def refused(arguments: String*) =
      intercept[ConfigException](parse(needed ++ arguments: _*).run.settings).getMessage
    Seq("0", "-0.5", "1.0000001", "2", "NaN", "Infinity", "1e-7").foreach { fraction =>
      assert(refused("--shuffle=all", s"--exchange-fraction=$fraction").startsWith(
          "--exchange-fraction is "), fraction)
    }
    Seq("none", "partitions", "rows").foreach(how =>
      assert(refused(s"--shuffle=$how", "--exchange-fraction=1").contains(
          s"is for --shuffle all, and --shuffle is '$how'")))
    assert(refused("--shuffle", "ranks").endsWith("none, partitions, rows or all"))
    assert(failure(needed ++ Seq("--exchange-fraction", "half"): _*).contains(
        "--exchange-fraction"))
  }

  test("an exchange goes together with resident blocks, equal steps and values in place") {
    Seq(Seq("--resident"), Seq("--resident-folder", "/d", "--keep"), Seq("--uneven", "pad"),
      Seq("--block-elements", "7")).foreach { more =>
      parse(needed ++ Seq("--shuffle", "all") ++ more: _*).run.settings.check()
    }
  }

  test("an exchange and --wait-for-rank exclude each other") {
    val settings = parse(needed ++ Seq("--shuffle", "all", "--wait-for-rank"): _*).run.settings
    assert(intercept[ConfigException](settings.check()).getMessage.startsWith(
        "--wait-for-rank is not for --shuffle all"))
  }

  test("the default of --partitions follows the ranks of the first run") {
    val settings = parse(needed: _*).run.settings.copy(ranks = 5)
    assert(ResumePositions.firstRanks(settings) == 5)
    Seq("no-position,no-position", "no-position, no-position/no-position").foreach {
      saved => assert(ResumePositions.firstRanks(settings.copy(resumePositions = Some(saved))) == 2)
    }
  }

  test("docs/OPTIONS.md agrees with the declarations (make reference writes it)") {
    assert(Files.readString(Paths.get("../docs/OPTIONS.md")) == OptionsReference.text)
  }
}
