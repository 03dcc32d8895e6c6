package supply.linalg

import org.apache.spark.mllib.linalg.{DenseMatrix, Vectors}
import org.apache.spark.mllib.linalg.distributed.{BlockMatrix, CoordinateMatrix, DistributedMatrix, IndexedRow, IndexedRowMatrix, RowMatrix}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.types.{ByteType, IntegerType, LongType, ShortType}

import supply.core.ConfigException
import supply.results.LoadedResults

/**
 * Matrices of ranks as MLlib's types. Distributed ones read a copy that the ranks write now, as
 * [[Matrix.toDF]]; a small array goes to the driver. Indices are the keys of the rows; of an array, the
 * numbers of its rows. Throws a SupplyException if rows have no keys, or keys that are no integers.
 */
private[supply] object ToMLlib {
  /** The rows in the order of the ranks, without their keys. */
  def rowMatrix(matrix: Matrix): RowMatrix = {
    val rows =
      if (matrix.isArray) rowsOfArray(matrix).map(_.vector)
      else arrays(matrix.toDF).map(Vectors.dense)
    new RowMatrix(rows, matrix.rows, Math.toIntExact(matrix.columns))
  }

  def indexedRowMatrix(matrix: Matrix): IndexedRowMatrix = {
    val columns = Math.toIntExact(matrix.columns)
    if (matrix.isArray) new IndexedRowMatrix(rowsOfArray(matrix), matrix.rows, columns)
    // MLlib finds the largest index when it needs it.
    else new IndexedRowMatrix(rowsWithKeys(matrix), 0L, columns)
  }

  def coordinateMatrix(matrix: Matrix): CoordinateMatrix =
    indexedRowMatrix(matrix).toCoordinateMatrix()

  def blockMatrix(matrix: Matrix, rowsPerBlock: Int, columnsPerBlock: Int): BlockMatrix =
    indexedRowMatrix(matrix).toBlockMatrix(rowsPerBlock, columnsPerBlock)

  /** All values, in the driver's memory. */
  def local(matrix: Matrix): DenseMatrix = {
    // Refuses what is too large.
    val values = matrix.toArray
    new DenseMatrix(matrix.rows.toInt, matrix.columns.toInt, values, isTransposed = true)
  }

  /**
   * Removes the copy that a distributed matrix of this object reads, or one that MLlib has computed
   * from it: as [[supply.api.Results.release]]. Throws a ConfigException if it reads none.
   */
  def release(matrix: DistributedMatrix): Unit = {
    val loaded = matrix match {
      case rows: RowMatrix => LoadedResults.of(rows.rows)
      case rows: IndexedRowMatrix => LoadedResults.of(rows.rows)
      case entries: CoordinateMatrix => LoadedResults.of(entries.entries)
      case blocks: BlockMatrix => LoadedResults.of(blocks.blocks)
      case _ => Nil
    }
    if (loaded.isEmpty) throw new ConfigException(
      "this matrix reads no rows of ranks: there is nothing to release")
    loaded.foreach(_.release())
  }

  private def rowsOfArray(matrix: Matrix): RDD[IndexedRow] = {
    val rows = matrix.toArray.grouped(Math.toIntExact(matrix.columns)).zipWithIndex.map {
      case (values, i) => IndexedRow(i.toLong, Vectors.dense(values))
    }
    SparkSession.active.sparkContext.parallelize(rows.toSeq, 1)
  }

  private def arrays(rows: DataFrame): RDD[Array[Double]] = {
    import rows.sparkSession.implicits._
    rows.select("row").as[Array[Double]].rdd
  }

  private def rowsWithKeys(matrix: Matrix): RDD[IndexedRow] = {
    val rows = matrix.toDF
    rows.schema.find(_.name == "key").map(_.dataType) match {
      case Some(LongType | IntegerType | ShortType | ByteType) =>
        import rows.sparkSession.implicits._
        rows.select($"key".cast("long"), $"row").as[(Long, Array[Double])].rdd.map {
          case (key, values) => IndexedRow(key, Vectors.dense(values))
        }
      case Some(other) => throw new ConfigException(
          s"the keys of $matrix are ${other.catalogString}, and MLlib's indices are integers: give another key when " +
            "you send the matrix, or take a RowMatrix")
      case None => throw new ConfigException(
          s"the rows of $matrix have no keys, and MLlib needs an index for each: give a key when you send the matrix, " +
            "or take a RowMatrix")
    }
  }
}
