package supply.rows

import scala.util.Try

import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.types._

import supply.protocol.{Column, FormatTable}

/** Which type of Spark is which format of the contract (proto/types.tsv). */
private[supply] object SparkTypes {
  /** A Spark that has no times, before 4.1, reads them as nanoseconds. */
  private val types: Map[String, DataType] = FormatTable.results.map { case (format, name) =>
    format -> typeNamed(name).getOrElse(LongType)
  }

  /** In DDL, a setting says what a timestamp is. */
  private def typeNamed(name: String) =
    Try(DataType.fromJson("\"" + name + "\"")).orElse(Try(DataType.fromDDL(name)))

  private val formats: Map[DataType, String] = FormatTable.supplied.collect {
    case (format, since) if SPARK_VERSION >= since => types(format) -> format
  }

  private val DecimalFormat = """d:([0-9]{1,2}),([0-9]{1,2})""".r
  private val ListFormat = """\+w:([1-9][0-9]*)""".r

  /** The format of a type without others within it; None: such a column cannot be supplied. */
  def formatOf(dataType: DataType): Option[String] = dataType match {
    case decimal: DecimalType => Some(s"d:${decimal.precision},${decimal.scale}")
    case _: StringType | _: CharType | _: VarcharType => Some("u")
    case _: DayTimeIntervalType => formats.get(DayTimeIntervalType())
    case _: YearMonthIntervalType => formats.get(YearMonthIntervalType())
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
    formats.get(dataType).filter(isNumber)

  private def isNumber(format: String) = format.length == 1 && FormatTable.bytes.contains(format)

  /** The type of a column of blocks; None: this version does not know its format. */
  def typeOf(column: Column): Option[DataType] = (column.format, column.children) match {
    case (ListFormat(_), Seq()) =>
      val number = types.get(column.childFormat).filter(_ => isNumber(column.childFormat))
      listLength(column).flatMap(_ => number).map(ArrayType(_, containsNull = false))
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
