package supply.linalg

import org.apache.spark.mllib.linalg.Vectors
import org.apache.spark.mllib.linalg.distributed.IndexedRow
import org.apache.spark.rdd.RDD
import org.scalatest.funsuite.AnyFunSuite

import supply.testing.LocalSpark

/** The rows of MLlib's matrices, a partition for each rank. */
class RowOrderSuite extends AnyFunSuite with LocalSpark {
  private def rows(partitions: Seq[Long]*): RDD[IndexedRow] =
    sc.parallelize(partitions, partitions.size).flatMap((part: Seq[Long]) => part).map(index =>
      IndexedRow(index, Vectors.dense(index.toDouble)))

  private def indices(rows: RDD[IndexedRow]): Seq[Seq[Long]] =
    rows.map(_.index).glom().collect().map(_.toSeq).toSeq

  private def isShuffled(rows: RDD[_]): Boolean = rows.toDebugString.contains("Shuffled")

  test("partitions that follow each other go to one rank, in their order") {
    val kept = RowOrder.kept(sc.parallelize(0 until 7, 7), 3)
    assert(kept.glom().collect().map(_.toSeq).toSeq == Seq(Seq(0, 1), Seq(2, 3), Seq(4, 5, 6)))
    assert(RowOrder.kept(sc.parallelize(0 until 2, 2), 3).getNumPartitions == 2)
  }

  test("rows in the order of their indices are not shuffled, whatever is missing") {
    val ordered = RowOrder.byIndex(rows(Seq(3, 4), Seq(), Seq(9), Seq(10, 1L << 40)), 2)
    assert(!isShuffled(ordered))
    assert(indices(ordered) == Seq(Seq(3, 4), Seq(9, 10, 1L << 40)))
  }

  test("other rows are sorted") {
    for (unordered <-
        Seq(rows(Seq(1, 0), Seq(2)), rows(Seq(5, 6), Seq(0, 1)), rows(Seq(1), Seq(1)))) {
      val ordered = RowOrder.byIndex(unordered, 2)
      assert(isShuffled(ordered) && ordered.getNumPartitions <= 2)
      assert(indices(ordered).flatten == unordered.map(_.index).collect().sorted.toSeq)
      assert(ordered.collect().forall(row => row.vector(0) == row.index))
    }
  }

  test("no rows stay no rows") {
    assert(RowOrder.byIndex(rows(Seq(), Seq()), 2).isEmpty())
  }
}
