package supply.run

import java.util.concurrent.atomic.AtomicInteger

import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumSource
import supply.lmdb.{LmdbRDD, LmdbSource, TestLmdb}
import supply.plan.Uneven
import supply.testing.{TemporaryFolder, TestRank}

/** What real ranks know of the elements and steps of a whole epoch, and when. */
class CountsSuite extends AnyFunSuite with RunsWithRanks {
  // A task that fails is tried again.
  override protected def master: String = "local[2,2]"

  /** The counts when the first block, or the first end, is there, and at the end of each epoch. */
  private def counts(rank: TestRank): Seq[String] = {
    val seen = Seq.newBuilder[String]
    var next = rank("next")
    seen += rank("counts")
    while (next.startsWith("OK ") || next.startsWith("END_OF_EPOCH")) {
      if (next.startsWith("OK ")) rank("release " + next.split(' ')(1)) else seen += rank("counts")
      next = rank("next")
    }
    assert(next == "END_OF_DATA")
    seen.result()
  }

  /** 27 elements: rank 0 gets 19 and rank 1 gets 8. */
  private def imbalanced(failures: Int = 0): DatumSource = {
    CountsSuite.failures.set(failures)
    new DatumSource(sc.parallelize(0 until 27, 3).mapPartitionsWithIndex((partition, _) =>
        Iterator.range(0, Seq(12, 8, 7)(partition)).map { i =>
          if (partition == 2 && i == 5 && CountsSuite.failures.getAndDecrement() > 0)
            throw new IllegalStateException("once more")
          SupplyJobSuite.tuple(i)
        }))
  }

  test("of an LMDB the elements are known from the start, and a rank gets as many") {
    TemporaryFolder { folder =>
      val database = TestLmdb.numbered(folder.resolve("db"), 20).toString
      val (seen, outcome) = supply(2, epochs = 2, take = counts)(
        new LmdbSource(LmdbRDD.open(sc, database, 3), inPlace = false))
      val elements = outcome.toOption.get.map(_.elements / 2)
      assert(elements.sum == 20 && elements.head != elements.last)
      assert(seen == elements.map(n => Seq.fill(3)(s"OK $n 0")))
    }
  }

  test("of other data they are known at the end of the first epoch") {
    val (seen, _) = supply(2, epochs = 2, take = counts)(imbalanced())
    assert(seen == Seq(Seq("AGAIN", "OK 19 0", "OK 19 0"), Seq("AGAIN", "OK 8 0", "OK 8 0")))
  }

  test("with resident blocks, too") {
    val (seen, _) =
      supply(2, epochs = 2, resident = true, take = counts)(imbalanced())
    // The whole epoch may be there with its first block.
    assert(seen.map(_.tail) == Seq(Seq("OK 19 0", "OK 19 0"), Seq("OK 8 0", "OK 8 0")))
  }

  test("a rank without partitions gets no element") {
    val (seen, _) = supply(2, take = counts)(
      new DatumSource(sc.parallelize(0 until 2, 1).map(SupplyJobSuite.tuple)))
    assert(seen.last == Seq("OK 0 0", "OK 0 0"))
  }

  test("with equal steps elements and steps are known from the start, the same on all ranks") {
    Seq(Uneven.Drop -> 2, Uneven.Pad -> 5).foreach { case (uneven, steps) =>
      val (seen, _) =
        supply(2, blockElements = Some(4), uneven = uneven, take = counts)(imbalanced())
      assert(seen == Seq.fill(2)(Seq.fill(2)(s"OK ${4 * steps} $steps")))
    }
  }

  test("with equal steps, but blocks of any size, the steps are not known") {
    val (seen, _) =
      supply(2, blockElements = None, uneven = Uneven.Drop, take = counts)(imbalanced())
    assert(seen == Seq.fill(2)(Seq.fill(2)("OK 8 0")))
  }

  test("the rest of an epoch after a position does not count") {
    val (seen, _) = supply(1, epochs = 2, position = Some("position-1:0:1:0:6:0000000000000000"),
      take = counts)(imbalanced())
    assert(seen == Seq(Seq("AGAIN", "AGAIN", "OK 27 0")))
  }

  test("nor does the rest of an epoch in which another number of ranks stopped") {
    val (seen, _) = supply(1, epochs = 2, take = counts,
      resumePositions = Some("position-1:0:1:0:6:0000000000000000,no-position"))(imbalanced())
    assert(seen == Seq(Seq("AGAIN", "AGAIN", "OK 27 0")))
  }

  test("after a rest that the rank does not know of, even known counts come later") {
    TemporaryFolder { folder =>
      val database = TestLmdb.numbered(folder.resolve("db"), 20).toString
      val (seen, _) = supply(2, epochs = 3, take = counts,
        resumePositions = Some("position-1:0:1:0:3:0000000000000000"))(
        new LmdbSource(LmdbRDD.open(sc, database, 4), inPlace = false))
      assert(seen == Seq.fill(2)(Seq("AGAIN", "AGAIN", "OK 10 0", "OK 10 0")))
    }
  }

  test("nor does the rest of an epoch that an attempt supplies after another one") {
    val (seen, outcome) =
      supply(1, epochs = 2, take = counts)(imbalanced(failures = 1))
    assert(outcome.toOption.get.map(_.elements) == Seq(54))
    assert(seen == Seq(Seq("AGAIN", "AGAIN", "OK 27 0")))
  }
}

object CountsSuite {
  private val failures = new AtomicInteger
}
