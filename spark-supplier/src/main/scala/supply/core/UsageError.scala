package supply.core

import picocli.CommandLine.{ParameterException, UnmatchedArgumentException}

import scala.jdk.CollectionConverters._

/** Says in one line which option is wrong. */
private[supply] object UsageError {
  /** `more` says where the options are listed. */
  def text(e: ParameterException, more: String = "--help lists the options"): String = {
    val nearest = e match {
      case unmatched: UnmatchedArgumentException => unmatched.getSuggestions.asScala.headOption
      case _ => None
    }
    e.getMessage + nearest.map(name => s": did you mean $name?").getOrElse("") + s" ($more)"
  }
}
