package supply.core

import scala.util.Try

/** Reads a number of bytes: 64KiB, 16MiB, 1GiB, or bytes. */
private[supply] object Size {
  private val shifts = Map("" -> 0, "KiB" -> 10, "MiB" -> 20, "GiB" -> 30)

  /** `what` is the setting, for the message. */
  def bytes(what: String, text: String): Long = {
    val (digits, unit) = text.span(_.isDigit)
    val found =
      for (number <- Try(digits.toLong).toOption; shift <- shifts.get(unit)
        if number > 0 && number <= (Long.MaxValue >> (shift + 1)))
        yield number << shift
    found.getOrElse(throw new ConfigException(
        s"$what '$text' is not a size: write it as 16MiB, 64KiB, 1GiB or in bytes"))
  }
}
