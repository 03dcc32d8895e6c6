package supply

import org.apache.spark.mllib.linalg.DenseMatrix
import org.apache.spark.mllib.linalg.distributed.{BlockMatrix, CoordinateMatrix, DistributedMatrix, IndexedRowMatrix, RowMatrix}

/**
 * Matrices that ranks hold ([[Ranks]], [[Matrix]]). For programs that use MLlib: its distributed
 * matrices to ranks and back (`import supply.linalg._`). Only this package, spark_supplier.ml above it,
 * which has the estimators, and org.apache.spark.ml.supply below it need MLlib: the other classes of
 * the jar run without it.
 */
package object linalg {
  /** Matrices of MLlib to ranks. */
  implicit final class RanksWithMLlib(private val ranks: Ranks) extends AnyVal {
    /**
     * Sends the rows of a RowMatrix, IndexedRowMatrix, CoordinateMatrix or BlockMatrix. See
     * [[FromMLlib.matrix]].
     */
    def matrix(from: DistributedMatrix, sparse: Boolean = false): Matrix =
      FromMLlib.matrix(ranks, from, sparse)
  }

  /** Matrices of ranks as those of MLlib. See [[ToMLlib]]. */
  implicit final class MatrixWithMLlib(private val matrix: Matrix) extends AnyVal {
    def toRowMatrix: RowMatrix = ToMLlib.rowMatrix(matrix)

    def toIndexedRowMatrix: IndexedRowMatrix = ToMLlib.indexedRowMatrix(matrix)

    def toCoordinateMatrix: CoordinateMatrix = ToMLlib.coordinateMatrix(matrix)

    /** rowsPerBlock, columnsPerBlock: MLlib's own choice if they are not set. */
    def toBlockMatrix(rowsPerBlock: Int = 1024, columnsPerBlock: Int = 1024): BlockMatrix =
      ToMLlib.blockMatrix(matrix, rowsPerBlock, columnsPerBlock)

    def toLocal: DenseMatrix = ToMLlib.local(matrix)
  }
}
