package supply.rows

import scala.util.Try

import org.apache.spark.sql.types._

import supply.protocol.Column

/** Which type of Spark is which format of the contract. docs/DATAFRAMES.md has the table. */
private[supply] object SparkTypes {
  private val Numbers: Seq[(DataType, String)] = Seq(ByteType -> "c", ShortType -> "s",
    IntegerType -> "i", LongType -> "l", FloatType -> "f", DoubleType -> "g")

  /** Spark has no unsigned integers: the next wider type has all their values. */
  private val Unsigned: Seq[(DataType, String)] =
    Seq(ShortType -> "C", IntegerType -> "S", LongType -> "I", DecimalType(20, 0) -> "L")

  private val Others: Seq[(DataType, String)] = Seq(BooleanType -> "b", StringType -> "u",
    BinaryType -> "z", DateType -> "tdD", TimestampType -> "tsu:UTC", TimestampNTZType -> "tsu:")

  private val formats: Map[DataType, String] = (Numbers ++ Others).toMap
  private val numbers: Map[String, DataType] = (Numbers ++ Unsigned).map(_.swap).toMap
  private val types: Map[String, DataType] = numbers ++ Others.map(_.swap)

  private val DecimalFormat = """d:([0-9]{1,2}),([0-9]{1,2})""".r
  private val ListFormat = """\+w:([1-9][0-9]*)""".r

  /** The format of a type that is not an array; None: such a column cannot be supplied. */
  def formatOf(dataType: DataType): Option[String] = dataType match {
    case decimal: DecimalType => Some(s"d:${decimal.precision},${decimal.scale}")
    case _: StringType => formats.get(StringType)
    case other => formats.get(other)
  }

  /** The format of the numbers of an array; None: such an array cannot be supplied. */
  def numberFormatOf(dataType: DataType): Option[String] =
    Numbers.collectFirst { case (`dataType`, format) => format }

  /** The type of a column of blocks; None: this version does not know its format. */
  def typeOf(column: Column): Option[DataType] = column.format match {
    case ListFormat(_) =>
      listLength(column).flatMap(_ => numbers.get(column.childFormat)).map(ArrayType(_,
          containsNull = false))
    case _ if column.childFormat.nonEmpty => None
    case DecimalFormat(precision, scale) =>
      Some(precision.toInt -> scale.toInt).collect {
        case (p, s) if p >= 1 && p <= DecimalType.MAX_PRECISION && s <= p => DecimalType(p, s)
      }
    case instant if instant.startsWith("tsu:") && instant != "tsu:" => Some(TimestampType)
    case other => types.get(other)
  }

  /** The numbers of each element of a list; None: it is none, or too long for an array. */
  def listLength(column: Column): Option[Int] = column.format match {
    case ListFormat(count) => Try(count.toInt).toOption
    case _ => None
  }
}
