package supply.protocol

/** The layout of a column's values in a block, by its format (proto/PROTOCOL.md, "Schema"). */
sealed trait Format

object Format {
  /** One bit per element. */
  case object Bits extends Format

  /** `bytes` bytes per element. */
  final case class Fixed(bytes: Int) extends Format

  /** Bytes of any length. */
  case object Variable extends Format

  /** Bytes of any length, each value in a foreign file or, if it is short, in its view. */
  case object Views extends Format

  private val List = """\+w:([1-9][0-9]*)""".r
  private val Decimal = """d:[0-9]+,[0-9]+""".r

  def of(column: Column): Format = column.format match {
    case "b" => Bits
    case "z" | "u" => Variable
    case "vz" => Views
    case "tdD" => Fixed(4)
    case Decimal() => Fixed(16)
    case List(count) =>
      Fixed(Math.multiplyExact(count.toInt, numberBytes(column, column.childFormat)))
    case instant if instant.startsWith("tsu:") => Fixed(8)
    case number => Fixed(numberBytes(column, number))
  }

  private def numberBytes(column: Column, format: String): Int = format match {
    case "c" | "C" => 1
    case "s" | "S" => 2
    case "i" | "I" | "f" => 4
    case "l" | "L" | "g" => 8
    case _ => throw new IllegalArgumentException(
        s"column '${column.name}' has the format '$format', which the contract does not know")
  }
}
