package supply.core

import picocli.CommandLine
import picocli.CommandLine.ParameterException

/** Options of a DataFrame's reader or writer: names without dashes. */
private[supply] object NamedOptions {
  /** Sets them in `declared`, an object with picocli's annotations, and returns it. */
  def parse[A](declared: A, options: Map[String, String]): A = {
    try new CommandLine(declared).parseArgs(options.toSeq.sorted.map { case (name, value) =>
        s"--$name=$value"
      }: _*)
    catch {
      case e: ParameterException =>
        throw new ConfigException(UsageError.text(e, "docs/DATAFRAMES.md lists the options"), e)
    }
    declared
  }
}
