package supply.rows

import org.apache.spark.sql.types._

import supply.core.ConfigException

/** Columns that an option names, separated by commas. */
private[supply] final case class NamedColumns(option: String, names: Set[String],
    areAll: Boolean = false) {
  def apply(name: String): Boolean = areAll || names(name)

  /** Throws a ConfigException if it names anything else. */
  private[rows] def check(schema: StructType): Unit =
    names.find(!schema.fieldNames.contains(_)).foreach(name =>
      throw new ConfigException(
        s"$option names '$name', and there is no such column: ${schema.fieldNames.mkString(", ")}"))
}

private[supply] object NamedColumns {
  /** Of the value of an option, or of the words for no column and for each. */
  def of(option: String, value: String, none: String, all: String): NamedColumns =
    NamedColumns(option,
      if (Set(none, all)(value)) Set.empty else value.split(',').map(_.trim).toSet, value == all)
}

/**
 * What columns become besides their types, as options say.
 *
 * @param half columns whose floats and doubles are rounded to half precision
 * @param varying columns whose lists get no common length
 * @param sparse columns whose vectors are structs of size, indices and values
 */
private[supply] final case class ColumnForms(
    half: NamedColumns = NamedColumns("half", Set.empty),
    varying: NamedColumns = NamedColumns("lists", Set.empty),
    sparse: NamedColumns = NamedColumns("vectors", Set.empty)) {
  private[rows] def of(field: StructField): ColumnForm =
    ColumnForm(isHalf = half(field.name), areSparse = sparse(field.name))

  /** Throws a ConfigException for columns that are not there, or have no numbers for `half`. */
  private[rows] def check(schema: StructType): Unit = {
    Seq(half, varying, sparse).foreach(_.check(schema))
    schema.fields.filter(field => half(field.name) && !ColumnForms.hasFloats(field.dataType))
      .foreach(field =>
        throw new ConfigException(
          s"half names '${field.name}', which is ${field.dataType.simpleString}: it is for float, double, and arrays, structs and " +
            "maps of them; of a vector, vector_to_array() makes an array"))
  }
}

private[supply] object ColumnForms {
  /** Those of their types. */
  val Own: ColumnForms = ColumnForms()

  private def hasFloats(dataType: DataType): Boolean = dataType match {
    case FloatType | DoubleType => true
    case ArrayType(element, _) => hasFloats(element)
    case MapType(key, value, _) => hasFloats(key) || hasFloats(value)
    case StructType(fields) => fields.exists(field => hasFloats(field.dataType))
    case _ => false
  }
}

/** The form of one column, and of all that is within it. */
private[rows] final case class ColumnForm(isHalf: Boolean, areSparse: Boolean) {
  /** The format of a type without others within it: one that can be supplied. */
  def formatOf(dataType: DataType): String =
    if (isHalf && ColumnForm.Floats(dataType)) "e" else SparkTypes.formatOf(dataType).get

  /** The format of the numbers of an array; None: it has something else. */
  def numberFormatOf(dataType: DataType): Option[String] =
    SparkTypes.numberFormatOf(dataType).map(_ => formatOf(dataType))
}

private[rows] object ColumnForm {
  private val Floats = Set[DataType](FloatType, DoubleType)

  val Own: ColumnForm = ColumnForms.Own.of(StructField("", NullType))
}

/** Numbers of half precision (IEEE 754 binary16). */
private[rows] object HalfFloat {
  /** Smaller ones have less digits: multiples of 2 to the power of -24. */
  private val Smallest = Math.scalb(1d, -14)

  /** The bits of the nearest one; of two, the even one. */
  def bits(value: Double): Short = {
    val sign = if (java.lang.Double.doubleToRawLongBits(value) < 0) 0x8000 else 0
    val magnitude = Math.abs(value)
    val bits =
      if (magnitude.isNaN) 0x7e00
      else if (magnitude >= 65520) 0x7c00
      else if (magnitude < Smallest) Math.rint(magnitude * (1 << 24)).toInt
      else {
        val exponent = Math.getExponent(magnitude)
        (exponent + 14 << 10) + Math.rint(Math.scalb(magnitude, 10 - exponent)).toInt
      }
    (sign | bits).toShort
  }
}
