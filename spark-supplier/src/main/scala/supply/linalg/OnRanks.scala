package supply.linalg

import org.apache.spark.ml.linalg.DenseMatrix
import org.apache.spark.sql.Dataset

import supply.offload.{Matrix, MatrixRows, Ranks}

/** How estimators use ranks: what they send, and what a routine makes, is freed after the fit. */
private[linalg] object OnRanks {
  /** Columns of a dataset as a matrix on the ranks. Its memory is freed with the next command. */
  def withMatrix[A](ranks: Ranks, dataset: Dataset[_], rows: MatrixRows)(body: Matrix => A): A = {
    val matrix = ranks.matrix(dataset.toDF(), rows)
    try body(matrix)
    finally matrix.forget()
  }

  /** Calls a routine of libsupply_linalg. Returns the arrays of these names among its results. */
  def arrays(ranks: Ranks, routine: String, arguments: Seq[Matrix], parameters: (String, Any)*)(
      names: String*): Map[String, DenseMatrix] = {
    val results = ranks.call("libsupply_linalg.so", routine, arguments, parameters.toMap)
    try results.collect {
        case (name, matrix) if names.contains(name) =>
          name -> ToMLlib.local(matrix).asML
      }.toMap
    finally results.foreach(_._2.forget())
  }
}
