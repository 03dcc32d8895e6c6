package supply.plan

import org.scalatest.funsuite.AnyFunSuite

class ImbalanceSuite extends AnyFunSuite {
  private def of(partitions: Int, ranks: Int, rows: Long*): Option[String] =
    Imbalance.of("df", partitions, ranks,
      if (rows.isEmpty) None else Some(rows.toIndexedSeq -> "rows"))

  test("ranks without a partition are named") {
    assert(of(1, 2).contains("df has 1 partition for 2 ranks, so rank 1 gets no rows"))
    assert(of(2, 5).contains("df has 2 partitions for 5 ranks, so ranks 2 to 4 get no rows"))
    assert(of(1, 2, 7).contains("df has 1 partition for 2 ranks, so rank 1 gets no rows"))
  }

  test("a rank with more than twice the rows of another is named") {
    assert(of(3, 2, 0, 1000, 0).contains(
        "df has 3 partitions for 2 ranks, of which rank 1 gets 1000 of 1000 rows, and rank 0 gets 0"))
    assert(of(4, 2, 10, 1, 11, 9).contains(
        "df has 4 partitions for 2 ranks, of which rank 0 gets 21 of 31 rows, and rank 1 gets 10"))
  }

  test("similar shares, and those that are not known, are well") {
    assert(of(7, 2).isEmpty && of(2, 2).isEmpty && of(1, 1).isEmpty)
    assert(of(3, 2, 10, 10, 10).isEmpty && of(4, 2, 10, 1, 10, 9).isEmpty)
    assert(of(2, 2, 0, 0).isEmpty, "no rows at all are another error")
    assert(of(0, 2).isEmpty && of(4, 2, 100, 1).isEmpty, "sizes of other partitions say nothing")
  }
}
