package supply.linalg

import org.apache.spark.ml.param.{BooleanParam, IntParam, Params, ParamValidators}
import org.apache.spark.ml.param.shared.{HasInputCol, HasOutputCol}
import org.apache.spark.sql.types.{DataType, StructType}

/** The number of components, of singular values or of clusters. */
private[linalg] trait HasK extends Params {
  final val k: IntParam =
    new IntParam(this, "k", "how many are computed (> 0)", ParamValidators.gt(0))

  final def getK: Int = $(k)
}

private[linalg] trait HasSparse extends Params {
  final val sparse: BooleanParam = new BooleanParam(this, "sparse",
    "whether the ranks keep only the entries of vectors that are not 0")
  setDefault(sparse -> false)

  final def getSparse: Boolean = $(sparse)
}

/** A column of vectors, and another one that a model makes of it. */
private[linalg] trait VectorColumns extends HasInputCol with HasOutputCol {
  protected def appended(schema: StructType, output: DataType): StructType = {
    VectorColumns.requireVectors(schema, $(inputCol))
    require(!schema.fieldNames.contains($(outputCol)),
      s"Output column ${$(outputCol)} already exists.")
    schema.add($(outputCol), output, nullable = false)
  }
}

private[linalg] object VectorColumns {
  /** Throws an IllegalArgumentException, as MLlib does, if there is no such column. */
  def requireVectors(schema: StructType, name: String): Unit = {
    val found = schema(name).dataType
    require(found.typeName == "vector",
      s"Column $name must be of vectors, and is ${found.catalogString}.")
  }
}
