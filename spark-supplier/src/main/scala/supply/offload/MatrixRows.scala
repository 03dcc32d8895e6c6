package supply.offload

import org.apache.spark.sql.{Column, DataFrame}
import org.apache.spark.sql.functions.{array, col}
import org.apache.spark.sql.types.{ArrayType, DataType, NumericType}

import supply.core.ConfigException

/**
 * Which columns of a DataFrame are the rows of a matrix. features: one column of arrays of numbers
 * or of Spark ML's vectors, or several columns of numbers. key: of a row, comes back with results.
 */
final case class MatrixRows(features: Seq[String], key: Option[String] = None) {
  /** The columns of a sparse matrix; None: it is dense. */
  private[offload] def sparseColumns: Option[Long] = None

  private[offload] def of(data: DataFrame): DataFrame = {
    key.foreach(typeOf(data, _))
    val row = features match {
      case Seq() => throw new ConfigException("a matrix needs at least one column of features")
      case Seq(one) => rowOf(data, one)
      case many =>
        many.foreach { name =>
          if (!typeOf(data, name).isInstanceOf[NumericType]) refuse(data, name, "a number")
        }
        array(many.map(name => col(quoted(name)).cast("double")): _*)
    }
    data.select(key.map(name => col(quoted(name)).as("key")).toSeq :+ row.as("row"): _*)
  }

  private def rowOf(data: DataFrame, name: String): Column = typeOf(data, name) match {
    case ArrayType(_: NumericType, _) => col(quoted(name))
    case _: NumericType => array(col(quoted(name)).cast("double"))
    case vector if vector.typeName == "vector" => MatrixRows.vectorToArray(col(quoted(name)))
    case _ => refuse(data, name, "an array of numbers, a vector or a number")
  }

  private def refuse(data: DataFrame, name: String, wanted: String): Nothing =
    throw new ConfigException(
      s"column '$name' is ${typeOf(data, name).catalogString}, not $wanted: cast it, or choose another")

  private def typeOf(data: DataFrame, name: String): DataType =
    data.schema.find(_.name == name).orElse(data.schema.find(_.name.equalsIgnoreCase(name)))
      .getOrElse(throw new ConfigException(
          s"there is no column '$name'; there are ${data.schema.fieldNames.mkString(", ")}")).dataType

  private def quoted(name: String): String = s"`${name.replace("`", "``")}`"
}

object MatrixRows {
  /** Of Spark ML, which is there at run time, and which this jar does not need to compile. */
  private def vectorToArray(vector: Column): Column = Class.forName("org.apache.spark.ml.functions")
    .getMethod("vector_to_array", classOf[Column], classOf[String])
    .invoke(null, vector, "float64").asInstanceOf[Column]
}
