package supply.rows

import org.apache.spark.sql.types._

import supply.core.ConfigException

/**
 * What columns become besides their types, as options say.
 *
 * @param half names of columns whose floats and doubles are rounded to half precision
 * @param areSparse vectors are structs of size, indices and values
 */
private[supply] final case class ColumnForms(half: Set[String], areSparse: Boolean) {
  private[rows] def of(field: StructField): ColumnForm =
    ColumnForm(isHalf = half(field.name), areSparse)

  /** Throws a ConfigException if `half` names anything else. */
  private[rows] def check(schema: StructType): Unit = half.foreach { name =>
    val field = schema.fields.find(_.name == name).getOrElse(throw new ConfigException(
        s"half names '$name', and there is no such column: ${schema.fieldNames.mkString(", ")}"))
    if (!ColumnForms.hasFloats(field.dataType)) throw new ConfigException(
      s"half names '$name', which is ${field.dataType.simpleString}: it is for float, double, and arrays, structs and " +
        "maps of them; of a vector, vector_to_array() makes an array")
  }
}

private[supply] object ColumnForms {
  /** Those of their types. */
  val Own: ColumnForms = ColumnForms(Set.empty, areSparse = false)

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
