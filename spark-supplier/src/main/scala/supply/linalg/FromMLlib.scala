package supply.linalg

import org.apache.spark.mllib.linalg.distributed.{BlockMatrix, CoordinateMatrix, DistributedMatrix, IndexedRow, IndexedRowMatrix, RowMatrix}
import org.apache.spark.mllib.linalg.{Vector, Vectors}
import org.apache.spark.rdd.{PartitionCoalescer, PartitionGroup, RDD}
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.{Partitioner, SparkException}

import supply.core.{ConfigException, SourceException}
import supply.run.PlacedJob

/** MLlib's distributed matrices, sent to ranks. */
private[supply] object FromMLlib {
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
    causeOf(send(ranks, from, sparse))

  /** Sends rows that are in the order of their index, the keys. */
  def ordered(ranks: Ranks, rows: RDD[IndexedRow], sparse: Boolean): Matrix =
    causeOf(sendWithKeys(ranks, RowOrder.kept(rows, ranks.size), sparse))

  private def causeOf(sent: => Matrix): Matrix =
    try sent
    catch { case e: SparkException => throw PlacedJob.causeOf(e) }

  /** For Python through py4j: [[matrix]] to ranks with a name, which have it by a name. */
  def send(id: String, name: String, from: DistributedMatrix, sparse: Boolean): Unit =
    NamedRanks(id).send(name, matrix(_, from, sparse))

  private def send(ranks: Ranks, from: DistributedMatrix, sparse: Boolean): Matrix = {
    from match {
      case matrix: RowMatrix =>
        val ordered = RowOrder.kept(matrix.rows, ranks.size)
        ranks.matrix(withoutKeys(ordered, sparse), MatrixRows(Seq(row), sparse = sparse))
      case matrix: IndexedRowMatrix =>
        sendWithKeys(ranks, RowOrder.byIndex(matrix.rows, ranks.size), sparse)
      case matrix: CoordinateMatrix =>
        sendWithKeys(ranks, WholeRows.of(matrix, ranks.size), sparse)
      case matrix: BlockMatrix => sendWithKeys(ranks, WholeRows.of(matrix, ranks.size), sparse)
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

  private def sendWithKeys(ranks: Ranks, rows: RDD[IndexedRow], sparse: Boolean): Matrix = {
    val spark = SparkSession.active
    import spark.implicits._
    val data =
      if (sparse) rows.map(row => row.index -> row.vector.asML).toDF(key, row)
      else rows.map(row => row.index -> row.vector.toArray).toDF(key, row)
    ranks.matrix(data, MatrixRows(Seq(row), Some(key), sparse))
  }
}

/** Rows in an order, in no more partitions than there are ranks: rank after rank gets one. */
private[linalg] object RowOrder {
  /** In the order of the RDD. */
  def kept[A](rows: RDD[A], ranks: Int): RDD[A] =
    rows.coalesce(ranks, shuffle = false, Some(Neighbours))(null)

  /** In the order of their index. Rows that are in order already are not shuffled. */
  def byIndex(rows: RDD[IndexedRow], ranks: Int): RDD[IndexedRow] = {
    val parts = rows.mapPartitions(rows => IndexRange.of(rows.map(_.index)).iterator).collect()
    val isOrdered = parts.forall(_.isAscending) &&
      parts.zip(parts.drop(1)).forall { case (part, next) => part.last < next.first }
    if (isOrdered) kept(rows, ranks) else sorted(rows, ranks)
  }

  private def sorted(rows: RDD[IndexedRow], ranks: Int): RDD[IndexedRow] =
    rows.map(row => row.index -> row).sortByKey(ascending = true, ranks).values
}

/** The indices of a partition that is not empty. isAscending: each is larger than the one before. */
private[linalg] final case class IndexRange(first: Long, last: Long, isAscending: Boolean)

private[linalg] object IndexRange {
  def of(indices: Iterator[Long]): Option[IndexRange] =
    if (indices.isEmpty) None
    else {
      val first = indices.next()
      Some(indices.foldLeft(IndexRange(first, first, isAscending = true)) { (range, index) =>
        IndexRange(first, index, range.isAscending && index > range.last)
      })
    }
}

/** Partitions that follow each other become one: Spark's own choice would change their order. */
private[linalg] object Neighbours extends PartitionCoalescer with Serializable {
  override def coalesce(most: Int, parent: RDD[_]): Array[PartitionGroup] = {
    val partitions = parent.partitions
    val groups = math.min(most, partitions.length)
    def begin(i: Int) = (partitions.length.toLong * i / groups).toInt
    Array.tabulate(groups) { i =>
      val group = new PartitionGroup(None)
      group.partitions ++= partitions.slice(begin(i), begin(i + 1))
      group
    }
  }
}

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
