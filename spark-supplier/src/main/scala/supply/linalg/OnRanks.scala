package supply.linalg

import org.apache.spark.ml.linalg.DenseMatrix
import org.apache.spark.ml.param.Params
import org.apache.spark.ml.util.DefaultParamsWritable
import org.apache.spark.sql.Dataset

import supply.core.ConfigException
import supply.offload.{Matrix, MatrixRows, Ranks}

/**
 * An estimator that uses ranks: what it sends, and what a routine makes, is freed after the fit. Its params
 * are saved, its ranks are not: set them after load.
 */
private[linalg] trait OnRanks extends Params with DefaultParamsWritable {
  private var fitting: Option[Ranks] = None

  /** The ranks that fit. Null: none. */
  def setRanks(value: Ranks): this.type = {
    fitting = Option(value)
    this
  }

  /** Null: none are set. */
  protected def ranks: Ranks = fitting.orNull

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

  private def required: Ranks = fitting.getOrElse(throw new ConfigException(
      s"$uid has no ranks, which are not saved with it: call setRanks(ranks)"))
}
