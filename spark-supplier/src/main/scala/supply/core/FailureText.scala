package supply.core

/**
 * The text of a failure, one line for users: for ranks, for Supplier.run and for the command line.
 *
 * Spark wraps a failure several times. Its outer texts say what it did (with its error class and the
 * file), and the innermost one says why. So the line has both. The texts of Spark's scheduler say
 * neither, and a Python function's traceback becomes its exception and the line that raised it.
 */
private[supply] object FailureText {
  private val longest = 400

  def of(error: Throwable): String = of(error, _ => None)

  /** hostOf: of an executor by its id. Spark does not always name the host of one that it lost. */
  def of(error: Throwable, hostOf: String => Option[String]): String = {
    val chain = causes(error)
    // In front of what a task has thrown.
    val own = chain.takeWhile(!_.isInstanceOf[InterruptedException]).map(_.getMessage)
    val isOfTask = own.exists(text => text != null && text.startsWith("Job aborted"))
    chain.collectFirst {
      case known: SupplyException => known.getMessage
      case _: InterruptedException if !isOfTask =>
        "the program that ran the Supplier was interrupted before every rank had all its data"
    }.getOrElse(withHost(line(chain.flatMap(links)), hostOf))
  }

  /** Of an exception that PySpark knows as text only. */
  def ofPython(message: String): String = line(List(Link("PythonException", message)))

  /** Of a task, as Spark keeps it. */
  def ofTask(reason: String, hostOf: String => Option[String]): String =
    withHost(line(ofReason(reason)), hostOf)

  /** The exception and its causes. It may be its own cause. */
  private[supply] def causes(error: Throwable): List[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(50).toList

  /** One failure of a chain. name: its class. */
  private final case class Link(name: String, message: String) {
    def hasErrorClass: Boolean = message.startsWith("[")

    def text: String =
      if (name.endsWith("PythonException") && message.contains("Traceback "))
        "Spark's Python worker raised " + PythonTraceback.summary(message)
      else if (message.contains("terminated due to idle timeout"))
        message.linesIterator.next() +
          " (spark.python.worker.idleTimeoutSeconds, spark.python.worker.killOnIdleTimeout)"
      else if (message.isEmpty) name
      else if (name.isEmpty || name.startsWith("org.apache.spark.")) message
      else s"$name: $message"
  }

  private def links(error: Throwable): List[Link] = {
    val message = Option(error.getMessage).getOrElse("")
    // As Java wraps an exception without a word of its own.
    if (error.getCause != null && message == error.getCause.toString) Nil
    else if (!isOfScheduler(message)) List(Link(error.getClass.getName, message))
    else if (error.getCause != null) Nil
    else ofScheduler(message)
  }

  private def isOfScheduler(message: String) = message.startsWith("Job aborted") ||
    message.startsWith("Exception thrown in awaitResult")

  /** If Spark's scheduler has the cause as text only, that text is a stack trace. */
  private def ofScheduler(message: String): List[Link] = {
    val reason = message match {
      case LostTask(rest) if !rest.startsWith("ExecutorLostFailure") => rest
      case other => other
    }
    ofReason(reason)
  }

  private def ofReason(reason: String): List[Link] =
    reason.split("\nCaused by: ").toList.map { part =>
      part match {
        // Without a message the second group is null.
        case Thrown(name, text) => Link(name, Option(text).getOrElse(""))
        case other => Link("", other)
      }
    }

  private val LostTask = """(?s).*most recent failure: Lost task [^:]*? executor [^ )]+\): (.*)""".r
  private val Thrown = """(?s)((?:\w+\.)+[\w$]+)(?:: (.*)|\s.*)""".r

  /** The outermost and the innermost text, with those in between that have an error class. */
  private def line(links: List[Link]): String = {
    val chosen = links.take(1) ++ links.drop(1).dropRight(1).filter(_.hasErrorClass) ++
      links.drop(1).takeRight(1)
    joined(chosen.map(link => short(link.text)).filter(_.nonEmpty))
  }

  /** Without a text that the one in front repeats. */
  private def joined(texts: List[String]): String =
    texts.foldLeft("") { (all, text) =>
      if (all.isEmpty) text
      else if (all.contains(text)) all
      else all.stripSuffix(".") + ": " + text
    }

  /** In one line, without stack traces, plans of queries and Spark's SQLSTATE. */
  private def short(text: String): String = {
    val end = Seq("\n\tat ", "\n== ", "\nDriver stacktrace:", ";\n").map(text.indexOf(_))
      .filter(_ >= 0).foldLeft(text.length)(math.min)
    val words = text.take(end).split("\\s+").filter(_.nonEmpty).mkString(" ")
    val plain = words.replaceFirst(" SQLSTATE: \\w+$", "")
    if (plain.length <= longest) plain else plain.take(longest) + "…"
  }

  private def withHost(line: String, hostOf: String => Option[String]): String =
    LostExecutor.findFirstMatchIn(line).flatMap(found => hostOf(found.group(1))) match {
      case Some(host) if !line.contains(host) => s"$line (on $host)"
      case _ => line
    }

  private val LostExecutor = """ExecutorLostFailure \(executor (\S+) """.r
}

/** What PySpark has from a Python worker: text. */
private object PythonTraceback {
  private val Frame = """  File "(.*)", line \d+(?:, in .*)?""".r

  private val Chained =
    "\n+(?:The above exception was the direct cause of|During handling of the above exception).*\n+"

  /** The exception and the line of the user's that raised it, with the first one's if it is chained. */
  def summary(traceback: String): String = {
    val exceptions = traceback.split(Chained).toList.map(exception)
    (exceptions.lastOption ++ exceptions.headOption).toList.distinct.mkString(", caused by ")
  }

  private def exception(traceback: String): String = {
    val lines = traceback.split("\n\tat ").head.split("\n").toVector
    val frames = lines.indices.filter(i => Frame.unapplySeq(lines(i)).isDefined)
    val text = lines.drop(frames.lastOption.fold(0)(_ + 1)).dropWhile(_.startsWith("  "))
      .filterNot(_.startsWith("Traceback ")).map(_.trim).filter(_.nonEmpty).mkString(" ")
    val where = frames.filter(i => isOfUser(lines(i))).lastOption
      .orElse(frames.filter(i => isOfLibrary(lines(i))).lastOption)
    text + where.fold("") { i =>
      val code = lines.lift(i + 1).filter(_.startsWith("    ")).map(_.trim)
      // A bare assert has no other text.
      val shown = code.filter(_ => !text.contains(":")).fold("")(": " + _)
      s" (${lines(i).trim}$shown)"
    }
  }

  private def isOfUser(frame: String) =
    isOfLibrary(frame) && !frame.matches(
      ".*/(?:site-packages|dist-packages|lib/python3[^/]*)/.*") &&
      !frame.contains("\"<frozen ")

  private def isOfLibrary(frame: String) =
    !frame.contains("/pyspark.zip/") && !frame.contains("/pyspark/") && !frame.contains("/supply/")
}
