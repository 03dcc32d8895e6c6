package supply

import picocli.CommandLine.{ParameterException, UnmatchedArgumentException}

import scala.jdk.CollectionConverters._

/** One line for a command line that is wrong. */
private[supply] object UsageError {

  def text(e: ParameterException): String = {
    val nearest = e match {
      case unmatched: UnmatchedArgumentException => unmatched.getSuggestions.asScala.headOption
      case _ => None
    }
    e.getMessage + nearest.map(name => s": did you mean $name?").getOrElse("") + " (--help lists the options)"
  }
}
