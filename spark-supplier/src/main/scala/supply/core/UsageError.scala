package supply.core

import picocli.CommandLine.{ParameterException, UnmatchedArgumentException}

import scala.jdk.CollectionConverters._

/** One line for options that are wrong. */
private[supply] object UsageError {

  /** @param more where all of them stand */
  def text(e: ParameterException, more: String = "--help lists the options"): String = {
    val nearest = e match {
      case unmatched: UnmatchedArgumentException => unmatched.getSuggestions.asScala.headOption
      case _ => None
    }
    e.getMessage + nearest.map(name => s": did you mean $name?").getOrElse("") + s" ($more)"
  }
}
