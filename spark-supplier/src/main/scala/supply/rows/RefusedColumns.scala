package supply.rows

import org.apache.spark.sql.catalyst.expressions.Cast
import org.apache.spark.sql.types._

import supply.core.ConfigException

/** Columns that cannot be supplied: what they are, as Spark names it, and what to write instead. */
private[supply] object RefusedColumns {
  /** Throws a ConfigException that names all of them. */
  def require(schema: StructType): Unit = {
    val refused = schema.fields.flatMap { field =>
      within(quoted(field.name), field.dataType).map { case (path, dataType) =>
        val instead =
          if (path == quoted(field.name)) ofColumn(path, dataType) else "a cast to another type"
        s"'$path' is ${dataType.simpleString}, use $instead"
      }
    }
    if (refused.nonEmpty) throw new ConfigException(
      refused.mkString("a column cannot be supplied as it is (", "; ", ")"))
  }

  /** What of that type cannot be supplied, with its path. */
  private def within(path: String, dataType: DataType): Seq[(String, DataType)] = dataType match {
    case ArrayType(element, _) => within(s"$path.item", element)
    case MapType(key, value, _) => within(s"$path.key", key) ++ within(s"$path.value", value)
    case struct: StructType if struct.nonEmpty =>
      val alike = if (struct.names.distinct.length < struct.length) Seq(path -> struct) else Nil
      alike ++ struct.flatMap(field => within(s"$path.${quoted(field.name)}", field.dataType))
    case own: UserDefinedType[_] => within(path, own.sqlType)
    case single if SparkTypes.formatOf(single).isDefined => Nil
    case other => Seq(path -> other)
  }

  private def ofColumn(column: String, dataType: DataType): String = dataType match {
    case NullType => s"cast($column as double)"
    case struct: StructType if struct.nonEmpty => "a cast to a struct with a name for each field"
    case _: StructType => "a struct with a field, or drop it"
    case other if !Cast.canCast(other, StringType) =>
      "a function that makes text or bytes of it, or drop it"
    case _ => s"cast($column as string)"
  }

  private def quoted(name: String): String =
    if (name.matches("[A-Za-z_][A-Za-z_0-9]*")) name else "`" + name.replace("`", "``") + "`"
}
