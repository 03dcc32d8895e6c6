package supply.cli

import java.nio.file.{Files, Paths}

import picocli.CommandLine
import picocli.CommandLine.Help.Ansi

/** Writes docs/OPTIONS.md from the declarations: `make reference`. */
object OptionsReference {

  def text: String = {
    val usage =
      new CommandLine(new SupplierOptions).setUsageHelpWidth(100).setUsageHelpAutoWidth(false)
        .getUsageMessage(Ansi.OFF)
    s"""# The Supplier's options
      |
      |Written by `make reference` from the declarations in `SupplierOptions.scala`; a test fails when it is stale.
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
