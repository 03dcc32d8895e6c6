package supply.tools

import java.nio.file.{Files, Paths}

import picocli.CommandLine
import picocli.CommandLine.Help.Ansi

import supply.lmdb.SupplierOptions

/** Writes docs/OPTIONS.md from the declarations of the options: `make reference`. */
private[supply] object OptionsReference {
  def text: String = {
    val usage =
      new CommandLine(new SupplierOptions).setUsageHelpWidth(100).setUsageHelpAutoWidth(false)
        .getUsageMessage(Ansi.OFF)
    s"""# The Supplier's options
      |
      |`launch/supplier`, `launch/supply-run`, `launch/submit-supplier` and `launch/slurm-run` take these options. `make reference`
      |writes this page, and a test fails if it is stale.
      |
      |```
      |${usage.trim}
      |```
      |""".stripMargin
  }

  def main(arguments: Array[String]): Unit = {
    Files.writeString(Paths.get(arguments(0)), text)
    ()
  }
}
