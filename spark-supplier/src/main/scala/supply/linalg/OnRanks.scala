package supply.linalg

import org.apache.spark.ml.linalg.DenseMatrix
import org.apache.spark.ml.param.shared.{HasInputCol, HasOutputCol}
import org.apache.spark.ml.param.{BooleanParam, IntParam, Param, ParamValidators, Params}
import org.apache.spark.ml.util.DefaultParamsWritable
import org.apache.spark.sql.Dataset
import org.apache.spark.sql.types.{DataType, StructType}

import supply.core.ConfigException
import supply.rows.SparkTypes

/**
 * An estimator that uses ranks: what it sends, and what a routine makes, is freed after the fit. Its params
 * are saved, its ranks are not: set them after load.
 */
trait OnRanks extends Params with DefaultParamsWritable {
  private var fitting: Option[Ranks] = None

  /** For a client of Spark Connect, which cannot call setRanks. */
  private[linalg] final val ranksId: Param[String] =
    new Param[String](this, "ranksId", "the name of the ranks of a client of Spark Connect")

  /** The ranks that fit. Null: none. */
  def setRanks(value: Ranks): this.type = {
    fitting = Option(value)
    this
  }

  /** Null: none are set. */
  protected def ranks: Ranks = fitting.orNull

  /** A fit. The client of Spark Connect learns from it why it has failed. */
  protected def onRanks[A](fit: => A): A = get(ranksId).fold(fit)(NamedRanks(_).noting(fit))

  /** Columns of a dataset as a matrix on the ranks. Its memory is freed with the next command. */
  protected def withMatrix[A](dataset: Dataset[_], rows: MatrixRows)(body: Matrix => A): A = {
    val matrix = required.matrix(dataset.toDF(), rows)
    try body(matrix)
    finally matrix.forget()
  }

  /** Calls a routine of libsupply_linalg. Returns the arrays of these names among its results. */
  protected def arrays(routine: String, arguments: Seq[Matrix], parameters: (String, Any)*)(
      names: String*): Map[String, DenseMatrix] = {
    val results = required.call("libsupply_linalg.so", routine, arguments, parameters.toMap)
    try results.collect {
        case (name, matrix) if names.contains(name) =>
          name -> ToMLlib.local(matrix).asML
      }.toMap
    finally results.foreach(_._2.forget())
  }

  private def required: Ranks = fitting.orElse(get(ranksId).map(NamedRanks(_).ranks)).getOrElse(
    throw new ConfigException(
      s"$uid has no ranks, which are not saved with it: call setRanks(ranks)"))
}

/** The number of components, of singular values or of clusters. */
trait HasK extends Params {
  final val k: IntParam =
    new IntParam(this, "k", "how many are computed (> 0)", ParamValidators.gt(0))

  final def getK: Int = $(k)
}

trait HasSparse extends Params {
  final val sparse: BooleanParam = new BooleanParam(this, "sparse",
    "whether the ranks keep only the entries of vectors that are not 0")
  setDefault(sparse -> false)

  final def getSparse: Boolean = $(sparse)
}

/** A column of vectors, and another one that a model makes of it. */
trait VectorColumns extends HasInputCol with HasOutputCol {
  protected def appended(schema: StructType, output: DataType): StructType = {
    VectorColumns.requireVectors(schema, $(inputCol))
    require(!schema.fieldNames.contains($(outputCol)),
      s"Output column ${$(outputCol)} already exists.")
    schema.add($(outputCol), output, nullable = false)
  }
}

object VectorColumns {
  /** Throws an IllegalArgumentException, as MLlib does, if there is no such column. */
  def requireVectors(schema: StructType, name: String): Unit = {
    val found = schema(name).dataType
    require(SparkTypes.isVector(found),
      s"Column $name must be of vectors, and is ${found.catalogString}.")
  }
}
