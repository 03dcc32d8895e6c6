package supply.rows

import scala.util.Try

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.types._

import supply.protocol.Column

/** Which type of Spark is which format of the contract. docs/TYPES.md has the table. */
private[supply] object SparkTypes {
  private val Numbers: Seq[(DataType, String)] = Seq(ByteType -> "c", ShortType -> "s",
    IntegerType -> "i", LongType -> "l", FloatType -> "f", DoubleType -> "g")

  /** Spark has no unsigned integers: the next wider type has all their values. */
  private val Unsigned: Seq[(DataType, String)] =
    Seq(ShortType -> "C", IntegerType -> "S", LongType -> "I", DecimalType(20, 0) -> "L")

  private val Others: Seq[(DataType, String)] = Seq(BooleanType -> "b", StringType -> "u",
    BinaryType -> "z", DateType -> "tdD", TimestampType -> "tsu:UTC", TimestampNTZType -> "tsu:")

  /** Types with parameters: of each, the variant that holds every value. Spark has times since 4.1: until then, nanoseconds. */
  private val Spans: Seq[(DataType, String)] =
    Seq(DayTimeIntervalType() -> "tDu", YearMonthIntervalType() -> "tiM",
      Try(DataType.fromJson("\"time(6)\"")).getOrElse(LongType) -> "ttn")

  /** Spark 3.5 writes them to no data source. */
  private val areIntervalsWritten = !SPARK_VERSION.startsWith("3.")

  private val formats: Map[DataType, String] = (Numbers ++ Others).toMap
  /** Ranks may write half precision, which Spark has not. */
  private val numbers: Map[String, DataType] =
    (Numbers ++ Unsigned :+ (FloatType -> "e")).map(_.swap).toMap
  private val types: Map[String, DataType] = numbers ++ (Others ++ Spans).map(_.swap)

  private val DecimalFormat = """d:([0-9]{1,2}),([0-9]{1,2})""".r
  private val ListFormat = """\+w:([1-9][0-9]*)""".r

  /** The format of a type without others within it; None: such a column cannot be supplied. */
  def formatOf(dataType: DataType): Option[String] = dataType match {
    case decimal: DecimalType => Some(s"d:${decimal.precision},${decimal.scale}")
    case _: StringType | _: CharType | _: VarcharType => Some("u")
    case _: DayTimeIntervalType if areIntervalsWritten => Some("tDu")
    case _: YearMonthIntervalType if areIntervalsWritten => Some("tiM")
    case variant if isVariant(variant) => Some("u")
    case time if isTime(time) => Some("ttn")
    case other => formats.get(other)
  }

  /** Of Spark 4.1 and later: nanoseconds, whatever its precision is. */
  def isTime(dataType: DataType): Boolean = dataType.typeName.startsWith("time(")

  /** Spark ML's or MLlib's. By name, because this package runs without them: types of users may be called alike. */
  def isVector(dataType: DataType): Boolean = isOfLinalg(dataType, "VectorUDT")

  def isMatrix(dataType: DataType): Boolean = isOfLinalg(dataType, "MatrixUDT")

  private def isOfLinalg(dataType: DataType, name: String) =
    Seq("ml", "mllib").exists(library =>
      dataType.getClass.getName == s"org.apache.spark.$library.linalg.$name")

  /** Of Spark 4 and later. It is supplied as JSON. */
  def isVariant(dataType: DataType): Boolean = dataType.typeName == "variant"

  /** The format of the numbers of an array; None: it has something else. */
  def numberFormatOf(dataType: DataType): Option[String] =
    Numbers.collectFirst { case (`dataType`, format) => format }

  /** The type of a column of blocks; None: this version does not know its format. */
  def typeOf(column: Column): Option[DataType] = (column.format, column.children) match {
    case (ListFormat(_), Seq()) =>
      listLength(column).flatMap(_ => numbers.get(column.childFormat)).map(ArrayType(_,
          containsNull = false))
    case _ if column.childFormat.nonEmpty => None
    case (ListFormat(_) | "+l", Seq(item)) => typeOf(item).map(ArrayType(_, item.nullable))
    case ("+s", fields) if fields.nonEmpty =>
      val types = fields.map(field => typeOf(field).map(StructField(field.name, _, field.nullable)))
      if (types.forall(_.isDefined)) Some(StructType(types.map(_.get))) else None
    case ("+m", Seq(Column(_, "+s", _, _, Seq(key, value)))) =>
      for (keys <- typeOf(key); values <- typeOf(value)) yield MapType(keys, values, value.nullable)
    case (_, children) if children.nonEmpty => None
    case (DecimalFormat(precision, scale), _) =>
      Some(precision.toInt -> scale.toInt).collect {
        case (p, s) if p >= 1 && p <= DecimalType.MAX_PRECISION && s <= p => DecimalType(p, s)
      }
    case (instant, _) if instant.startsWith("tsu:") && instant != "tsu:" => Some(TimestampType)
    case (other, _) => types.get(other)
  }

  /** The numbers of each element of a list; None: it is none, or too long for an array. */
  def listLength(column: Column): Option[Int] = column.format match {
    case ListFormat(count) => Try(count.toInt).toOption
    case _ => None
  }
}
