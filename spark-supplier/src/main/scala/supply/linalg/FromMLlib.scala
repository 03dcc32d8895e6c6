package supply.linalg

import org.apache.spark.SparkException
import org.apache.spark.mllib.linalg.Vector
import org.apache.spark.mllib.linalg.distributed.{BlockMatrix, CoordinateMatrix, DistributedMatrix, IndexedRow, IndexedRowMatrix, RowMatrix}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, SparkSession}

import supply.core.ConfigException
import supply.driver.PlacedJob
import supply.offload.{Matrix, MatrixRows, Ranks}

/** MLlib's distributed matrices, sent to ranks. */
object FromMLlib {
  /**
   * Sends a matrix. The rows keep their order: of a RowMatrix, that of its RDD, and they have no
   * keys; of the others, that of their indices, which are the keys. Of an IndexedRowMatrix only the
   * rows that exist are sent, as MLlib's own methods do; of a CoordinateMatrix or a BlockMatrix all
   * rows, those without an entry as zeros.
   *
   * sparse: keep only the entries that are not 0. Throws a SupplyException for an index or an entry
   * that is there twice or outside of the matrix, NaN, or too little memory.
   */
  def matrix(ranks: Ranks, from: DistributedMatrix, sparse: Boolean): Matrix =
    try send(ranks, from, sparse)
    catch { case e: SparkException => throw PlacedJob.causeOf(e) }

  private def send(ranks: Ranks, from: DistributedMatrix, sparse: Boolean): Matrix = {
    val rows = MatrixRows(Seq(row), Some(key), sparse)
    from match {
      case matrix: RowMatrix =>
        val ordered = RowOrder.kept(matrix.rows, ranks.size)
        ranks.matrix(withoutKeys(ordered, sparse), rows.copy(key = None))
      case matrix: IndexedRowMatrix =>
        ranks.matrix(withKeys(RowOrder.byIndex(matrix.rows, ranks.size), sparse), rows)
      case matrix: CoordinateMatrix =>
        ranks.matrix(withKeys(WholeRows.of(matrix, ranks.size), sparse), rows)
      case matrix: BlockMatrix =>
        ranks.matrix(withKeys(WholeRows.of(matrix, ranks.size), sparse), rows)
      case other => throw new ConfigException(
          s"a ${other.getClass.getName} cannot be sent to ranks: give a RowMatrix, an IndexedRowMatrix, a " +
            "CoordinateMatrix or a BlockMatrix")
    }
  }

  private val key = "key"
  private val row = "row"

  private def withoutKeys(rows: RDD[Vector], sparse: Boolean): DataFrame = {
    val spark = SparkSession.active
    import spark.implicits._
    // An array is copied once, a vector several times.
    if (sparse) rows.map(vector => Tuple1(vector.asML)).toDF(row)
    else rows.map(_.toArray).toDF(row)
  }

  private def withKeys(rows: RDD[IndexedRow], sparse: Boolean): DataFrame = {
    val spark = SparkSession.active
    import spark.implicits._
    if (sparse) rows.map(row => row.index -> row.vector.asML).toDF(key, row)
    else rows.map(row => row.index -> row.vector.toArray).toDF(key, row)
  }
}
