package supply.linalg

import org.apache.spark.Partitioner
import org.apache.spark.mllib.linalg.{Vector, Vectors}
import org.apache.spark.mllib.linalg.distributed.{BlockMatrix, CoordinateMatrix, DistributedMatrix, IndexedRow}
import org.apache.spark.rdd.RDD

import supply.core.{ConfigException, SourceException}

/**
 * All rows of a matrix that is in pieces, in the order of their index, a partition for each rank.
 * The pieces are shuffled and sorted, so that a row is assembled from neighbours.
 */
private[linalg] object WholeRows {
  /** A part of a row: its values from the column `first` on. */
  private type Piece = ((Long, Long), Vector)

  def of(matrix: CoordinateMatrix, ranks: Int): RDD[IndexedRow] =
    of(matrix, matrix.entries.map(entry => (entry.i, entry.j) -> Vectors.dense(entry.value)), ranks)

  def of(matrix: BlockMatrix, ranks: Int): RDD[IndexedRow] = {
    val (height, width) = (matrix.rowsPerBlock.toLong, matrix.colsPerBlock.toLong)
    val pieces = matrix.blocks.flatMap { case ((i, j), block) =>
      block.rowIter.zipWithIndex.map { case (values, row) =>
        (i * height + row, j * width) -> values
      }
    }
    of(matrix, pieces, ranks)
  }

  private def of(matrix: DistributedMatrix, pieces: RDD[Piece], ranks: Int): RDD[IndexedRow] = {
    val (rows, columns) = size(matrix)
    if (columns > Int.MaxValue) throw new ConfigException(
      s"the matrix has $columns columns, and a row of ranks has at most ${Int.MaxValue}")
    val ranges = new RowRanges(rows, ranks)
    pieces.map { piece =>
      val ((row, column), values) = piece
      if (row < 0 || row >= rows || column < 0 || column + values.size > columns)
        throw new SourceException(
          s"there are entries in row $row, columns $column to ${column + values.size - 1}, and the matrix is " +
            s"$rows × $columns: rows and columns are numbered from 0")
      piece
    }.repartitionAndSortWithinPartitions(ranges).mapPartitionsWithIndex { (part, pieces) =>
      new AssembledRows(ranges.first(part), ranges.first(part + 1), columns.toInt, pieces.buffered)
    }
  }

  /** Rows and columns. MLlib looks for the largest indices if it was not given them. */
  private def size(matrix: DistributedMatrix): (Long, Long) =
    try {
      (matrix.numRows(), matrix.numCols())
    } catch {
      case e: UnsupportedOperationException => throw new ConfigException(
          "the matrix has no entries, so MLlib does not know its size: give its rows and columns when you make it",
          e)
    }

  /** Rows `row` until `end`, of pieces that are sorted by row and column. */
  private final class AssembledRows(private var row: Long, end: Long, columns: Int,
      pieces: collection.BufferedIterator[Piece]) extends Iterator[IndexedRow] {
    override def hasNext: Boolean = row < end

    override def next(): IndexedRow = {
      val indices = Array.newBuilder[Int]
      val entries = Array.newBuilder[Double]
      var last = -1
      while (pieces.hasNext && pieces.head._1._1 == row) {
        val ((_, first), values) = pieces.next()
        values.foreachActive { (i, value) =>
          val column = first.toInt + i
          if (column <= last) throw new SourceException(
            s"the entry in row $row, column $column is there twice: add such entries up first")
          last = column
          indices += column
          entries += value
        }
      }
      row += 1
      IndexedRow(row - 1, Vectors.sparse(columns, indices.result(), entries.result()))
    }
  }
}

/** A range of rows for each rank, all of the same length but the last ones. */
private[linalg] final class RowRanges(rows: Long, ranks: Int) extends Partitioner {
  private val length = math.max(1, (rows + ranks - 1) / ranks)

  override def numPartitions: Int = ranks

  /** key: row, and column. */
  override def getPartition(key: Any): Int =
    (key.asInstanceOf[(Long, Long)]._1 / length).toInt

  /** The number of the first row of a range. */
  def first(part: Int): Long = math.min(rows, part * length)
}
