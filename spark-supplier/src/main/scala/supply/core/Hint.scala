package supply.core

import scala.util.control.NonFatal

import org.slf4j.LoggerFactory

/** What a query's plan says before it is computed: sizes, numbers of rows, what a warning needs. */
private[supply] object Hint {
  private val log = LoggerFactory.getLogger("supply.Hint")

  /** None: there is no hint. A plan may contain anything, and says what is wrong with it when it is computed. */
  def apply[A](name: String)(body: => Option[A]): Option[A] =
    try body
    catch {
      case e @ (NonFatal(_) | _: LinkageError) =>
        log.debug(s"the plan does not say $name", e)
        None
    }
}
