package supply.sources.rows

import org.apache.spark.sql.types._

import supply.core.ConfigException
import supply.types.SparkTypes

/** Columns that cannot be supplied: what they are, as Spark names it, and what to write instead. */
private[supply] object RefusedColumns {
  /** Throws a ConfigException that names all of them. */
  def require(schema: StructType): Unit = {
    val refused = schema.fields.filterNot(field => isSupplied(field.dataType))
    if (refused.nonEmpty) throw new ConfigException(
      refused.map(field =>
        s"'${field.name}' is ${field.dataType.simpleString}, use ${instead(field)}")
        .mkString("a column cannot be supplied as it is (", "; ", ")"))
  }

  private def isSupplied(dataType: DataType): Boolean = dataType match {
    case ArrayType(number, _) => SparkTypes.numberFormatOf(number).isDefined
    case single => SparkTypes.formatOf(single).isDefined
  }

  private def instead(field: StructField): String = {
    val column = quoted(field.name)
    field.dataType match {
      case ArrayType(ArrayType(_, _), _) => s"flatten($column)"
      case ArrayType(own: UserDefinedType[_], _) if own.typeName == "vector" =>
        s"one column for each vector: ${ofVector(s"${field.name}[0]")}"
      case ArrayType(StructType(fields), _) if fields.nonEmpty =>
        s"transform($column, x -> x.${quoted(fields.head.name)}), or explode it into rows"
      case ArrayType(_: StringType | BinaryType, _) =>
        s"concat_ws(',', $column), or explode it into rows"
      case ArrayType(BooleanType, _) => s"cast(cast($column as array<int>) as array<double>)"
      case ArrayType(_, _) => s"cast($column as array<double>)"
      case MapType(key, _, _) => s"$column[${keyOf(key)}] for each key that you need"
      case StructType(fields) if fields.nonEmpty =>
        s"$column.${quoted(fields.head.name)}, or $column.* for all fields"
      case own: UserDefinedType[_] if own.typeName == "vector" => ofVector(field.name)
      case _: UserDefinedType[_] => "a UDF that makes an array of numbers of it"
      case other if other.typeName == "variant" =>
        s"variant_get($column, '$$.NAME', 'double') for each value that you need"
      case NullType => s"cast($column as double)"
      case _ => s"cast($column as string)"
    }
  }

  /** For vectors of spark.ml and of spark.mllib. */
  private def ofVector(column: String): String =
    s"""pyspark.ml.functions.vector_to_array("$column") (in Scala org.apache.spark.ml.functions)"""

  private def keyOf(key: DataType): String = key match {
    case _: StringType => "'KEY'"
    case _ => "KEY"
  }

  private def quoted(name: String): String =
    if (name.matches("[A-Za-z_][A-Za-z_0-9]*")) name else "`" + name.replace("`", "``") + "`"
}
