package supply.core

import scala.jdk.CollectionConverters._

import picocli.CommandLine
import picocli.CommandLine.{ParameterException, UnmatchedArgumentException}

/** Options of a DataFrame's reader or writer: names without dashes. */
private[supply] object NamedOptions {
  /** Sets them in `declared`, an object with picocli's annotations, and returns it. */
  def parse[A <: AnyRef](declared: A, options: Map[String, String]): A = {
    read(declared, options).headOption.foreach(e => throw wrong(e))
    declared
  }

  /** Reads the options that can be read; returns what is wrong with the others. */
  def read(declared: AnyRef, options: Map[String, String]): Seq[ParameterException] =
    read(new CommandLine(declared),
      options.toSeq.sorted.map { case (name, value) =>
        s"--$name=$value"
      })

  def read(line: CommandLine, arguments: Seq[String]): Seq[ParameterException] = {
    val spec = line.getCommandSpec
    spec.parser.collectErrors(true)
    if (arguments.exists(_.takeWhile(_ != '=') == "--serve")) NotWithServe.foreach { name =>
      val required = spec.findOption(name)
      spec.remove(required).addOption(required.toBuilder.required(false).build())
    }
    line.parseArgs(arguments: _*).errors.asScala.toSeq.collect { case e: ParameterException => e }
  }

  /** Ranks that connect have no files. */
  private val NotWithServe = Seq("--mapped-files", "--named-pipes")

  def wrong(e: ParameterException): ConfigException =
    new ConfigException(UsageError.text(e, "docs/RANKS.md lists the options"), e)
}

/** Says in one line which option is wrong. */
private[supply] object UsageError {
  /** `more` says where the options are listed. */
  def text(e: ParameterException, more: String = "--help lists the options"): String = {
    val nearest = e match {
      case unmatched: UnmatchedArgumentException =>
        val wrong = unmatched.getUnmatched.get(0).takeWhile(_ != '=')
        e.getCommandLine.getCommandSpec.optionsMap.keySet.asScala.toSeq
          .map(name => distance(wrong, name) -> name).sorted
          .collectFirst { case (changes, name) if changes <= wrong.length / 3 => name }
      case _ => None
    }
    e.getMessage + nearest.map(name => s": did you mean $name?").getOrElse("") + s" ($more)"
  }

  /** How many characters must be added, left out or replaced, in any case of letters. */
  private def distance(one: String, other: String): Int =
    other.foldLeft((0 to one.length).toVector) { (row, c) =>
      one.indices.foldLeft(Vector(row.head + 1)) { (next, i) =>
        val changed = if (one(i).toLower == c.toLower) 0 else 1
        next :+ math.min(math.min(next.last, row(i + 1)) + 1, row(i) + changed)
      }
    }.last
}
