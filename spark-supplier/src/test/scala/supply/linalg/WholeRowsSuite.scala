package supply.linalg

import org.apache.spark.SparkException
import org.apache.spark.mllib.linalg.{Matrices, Matrix => LocalMatrix, SparseVector}
import org.apache.spark.mllib.linalg.distributed.{BlockMatrix, CoordinateMatrix, IndexedRow, MatrixEntry}
import org.apache.spark.rdd.RDD
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException
import supply.testing.{AllCases, LocalSpark}

/** The rows of a CoordinateMatrix and of a BlockMatrix. */
class WholeRowsSuite extends AnyFunSuite with LocalSpark with AllCases {
  import WholeRowsSuite._

  private def coordinates(rows: Long, columns: Long, entries: MatrixEntry*): CoordinateMatrix =
    new CoordinateMatrix(sc.parallelize(entries, 3), rows, columns)

  private def blocks(rows: Long, columns: Long, blocks: ((Int, Int), LocalMatrix)*): BlockMatrix =
    new BlockMatrix(sc.parallelize(blocks, 2), 2, 3, rows, columns)

  private def refused(rows: => RDD[IndexedRow], text: String) = {
    val error = intercept[SparkException](rows.count())
    assert(error.getMessage.contains(text))
  }

  test("all rows of a coordinate matrix, in order, a range for each rank") {
    val parts = WholeRows.of(coordinates(5, 4, MatrixEntry(3, 2, 7), MatrixEntry(0, 3, 2),
        MatrixEntry(3, 0, 5)), 2).glom().collect()
    assert(parts.map(_.map(_.index).toSeq).toSeq == Seq(Seq(0L, 1L, 2L), Seq(3L, 4L)))
    assert(values(parts.flatten.toSeq) == Seq(Seq(0, 0, 0, 2), Seq.fill(4)(0), Seq.fill(4)(0),
      Seq(5, 0, 7, 0), Seq.fill(4)(0)))
    assert(parts.last.head.vector.asInstanceOf[SparseVector].indices.toSeq == Seq(0, 2))
  }

  test("a matrix without entries has zeros, if its size is known") {
    val rows = WholeRows.of(coordinates(2, 3), 2).collect()
    assert(values(rows.toSeq) == Seq.fill(2)(Seq(0, 0, 0)))
    assert(intercept[ConfigException](WholeRows.of(coordinates(0, 0), 2)).getMessage.contains(
        "the matrix has no entries"))
  }

  test("more ranks than rows") {
    assert(WholeRows.of(coordinates(2, 1, MatrixEntry(1, 0, 3)), 5).collect().map(
      _.index).toSeq == Seq(0L, 1L))
  }

  test("the rows of any entries are what MLlib makes of them") {
    forAll(shapes, rankCounts, minSuccessful(20)) { (shape, ranks) =>
      val (rows, columns, entries) = shape
      val matrix = coordinates(rows, columns,
        entries.toSeq.map { case ((i, j), value) =>
          MatrixEntry(i, j, value)
        }: _*)
      val expected = matrix.toBlockMatrix(2, 3).toLocalMatrix().rowIter.map(_.toArray.toSeq).toSeq
      assert(values(WholeRows.of(matrix, ranks).collect().toSeq) == expected)
      assert(values(WholeRows.of(matrix.toBlockMatrix(2, 3), ranks).collect().toSeq) == expected)
    }
  }

  test("dense and sparse blocks, and blocks that are missing") {
    val dense = Matrices.dense(2, 3, Array(1, 4, 2, 5, 3, 6))
    val matrix = blocks(3, 5, (0, 0) -> dense,
      (0, 1) -> Matrices.sparse(2, 2, Array(0, 1, 1),
        Array(1), Array(9.0)), (1, 0) -> dense)
    refused(WholeRows.of(matrix, 2), "there are entries in row 3, columns 0 to 2")
    assert(values(WholeRows.of(new BlockMatrix(matrix.blocks, 2, 3, 4, 5), 2).collect().toSeq) ==
      Seq(Seq(1, 2, 3, 0, 0), Seq(4, 5, 6, 9, 0), Seq(1, 2, 3, 0, 0), Seq(4, 5, 6, 0, 0)))
  }

  test("what is there twice, or outside of the matrix, is refused") {
    refused(WholeRows.of(coordinates(9, 9, MatrixEntry(4, 2, 1), MatrixEntry(4, 2, 1)), 2),
      "the entry in row 4, column 2 is there twice")
    refused(WholeRows.of(coordinates(2, 2, MatrixEntry(0, 2, 1)), 2), "and the matrix is 2 × 2")
    refused(WholeRows.of(coordinates(2, 2, MatrixEntry(-1, 0, 1)), 2), "entries in row -1")
    val wide = coordinates(1, 1L << 31, MatrixEntry(0, 0, 1))
    assert(intercept[ConfigException](WholeRows.of(wide, 1)).getMessage.contains(
        "2147483648 columns"))
  }
}

object WholeRowsSuite {
  private def values(rows: Seq[IndexedRow]): Seq[Seq[Double]] = rows.map(_.vector.toArray.toSeq)

  private val rankCounts = Gen.choose(1, 4)

  /** Rows, columns, entries by place. */
  private val shapes = for {
    rows <- Gen.choose(1, 9)
    columns <- Gen.choose(1, 9)
    places = Gen.zip(Gen.choose(0, rows - 1), Gen.choose(0, columns - 1))
    entries <- Gen.mapOf(Gen.zip(places, Gen.choose(1.0, 2.0)))
  } yield (rows.toLong, columns.toLong, entries)
}
