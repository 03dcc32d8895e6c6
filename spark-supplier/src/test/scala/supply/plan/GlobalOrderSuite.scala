package supply.plan

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException
import supply.protocol.{Position, SavedPosition}
import supply.testing.AllCases

class GlobalOrderSuite extends AnyFunSuite with AllCases {
  private val orders = for {
    ranks <- Gen.choose(1, 9)
    batch <- Gen.choose(ranks, 40)
    elements <- Gen.choose(0L, 200L)
  } yield (GlobalOrder(batch, ranks), elements)

  /** As a rank takes them. */
  private def ofRank(order: GlobalOrder, rank: Int, elements: Long, done: Long = 0) = {
    val first = order.begin(rank)
    (done until elements).filter { index =>
      val place = index % order.batch
      place >= first && place < first + order.share(rank)
    }
  }

  test("each element of an epoch is of one rank") {
    forAll(orders) { case (order, elements) =>
      val own = (0 until order.ranks).map(ofRank(order, _, elements))
      assert(own.flatten.sorted == (0L until elements))
      own.zipWithIndex.foreach { case (found, rank) =>
        assert(order.elements(rank, elements) == found.size)
      }
    }
  }

  test("the shares of a batch differ by one element at most, and each rank has one") {
    forAll(orders) { case (order, _) =>
      val shares = (0 until order.ranks).map(order.share)
      assert(shares.sum == order.batch && shares.min >= 1 && shares.max - shares.min <= 1)
    }
  }

  /**
   * What ranks save after a step. With `pad` those without an element repeat one; else they make no
   * such step. If `isKnown`, they know the number of steps: then the last one is the end of the epoch.
   * Else those of `haveEnd` have received the end, if they have consumed all their elements.
   */
  private def saved(order: GlobalOrder, all: Long, step: Long, isPadded: Boolean, isKnown: Boolean,
      haveEnd: Set[Int]) =
    (0 until order.ranks).map { rank =>
      val (own, share) = (order.elements(rank, all), order.share(rank))
      def steps(elements: Long, share: Int) = (elements + share - 1) / share
      val last = if (isPadded) steps(all, order.batch) else steps(own, share)
      if (step >= last && (isKnown || haveEnd(rank))) at(1, None)
      else at(0, Some(placeAfter(order, rank, math.min(own, step * share))))
    }

  /** Where a rank is that has passed `own` elements of its own. */
  private def placeAfter(order: GlobalOrder, rank: Int, own: Long): Long =
    Iterator.from(0).map(_.toLong).find(order.elements(rank, _) == own).get

  test("other ranks continue after the same batch, and no element is lost or comes twice") {
    val saves = for {
      step <- Gen.choose(0L, 20L)
      ranks <- Gen.choose(1, 9)
      isPadded <- Gen.oneOf(true, false)
      isKnown <- Gen.oneOf(true, false)
      sizesAreKnown <- Gen.oneOf(true, false)
      haveEnd <- Gen.someOf(0 until 9)
    } yield (step, ranks, isPadded, isKnown, sizesAreKnown, haveEnd.toSet)
    forAll(orders, saves, minSuccessful(2000)) {
      case ((order, all), (anyStep, ranks, isPadded, isKnown, sizesAreKnown, haveEnd)) =>
        // Without "pad", ranks that have ended are in the next epoch at a later step.
        val step = math.min(anyStep, all / order.batch + (if (isPadded) 1 else 0))
        val (epoch, done) =
          order.reached(saved(order, all, step, isPadded, isKnown, haveEnd), Begin,
            if (sizesAreKnown) Some(all) else None)
        val other = GlobalOrder(order.batch, math.min(ranks, order.batch))
        val rest = (0 until other.ranks).flatMap(ofRank(other, _, all, done)).sorted
        if (epoch == 1) assert(done == 0 && step * order.batch >= all)
        else assert(rest == (math.min(all, step * order.batch) until all))
    }
  }

  test("ranks inside one batch of all, at other places, have reached its end") {
    val order = GlobalOrder(12, 3)
    for (places <-
        Seq(Seq(16L, 20L, 24L), Seq(24L, 24L, 24L), Seq(24L, 28L, 32L), Seq(17L, 27L, 31L)))
      assert(order.reached(places.map(place => at(2, Some(place))).toVector, Begin, None) == ((2,
        24)))
  }

  test(
    "a rank has received the end of the epoch, and another one has consumed all of its elements") {
    val order = GlobalOrder(64, 2)
    val saved = Vector(at(1, None), at(0, Some(128)))
    assert(order.reached(saved, Begin, Some(128)) == ((0, 160)))
    assert((0 until 2).flatMap(ofRank(order, _, 128, done = 160)).isEmpty)
  }

  test("a last batch of which a rank gets nothing") {
    val order = GlobalOrder(64, 2)
    assert(order.reached(Vector(at(1, Some(32)), at(2, None)), Begin, None) == ((1, 64)))
    assert(order.reached(Vector(at(1, Some(64)), at(2, None)), Begin, Some(70)) == ((1, 64)))
    assert(order.reached(Vector(at(1, Some(32)), SavedPosition(Position.End, 1)), Begin, None) == ((
      1, 64)))
    // "pad" repeats a batch there.
    assert(order.reached(Vector(at(0, Some(70)), at(0, Some(64))), Begin, None) == ((0, 70)))
    assert(order.reached(Vector(at(0, Some(70)), at(1, None)), Begin, None) == ((0, 70)))
  }

  test("a rank without a position is where its run has begun") {
    val order = GlobalOrder(12, 3)
    assert(order.reached(Vector.fill(3)(NoPosition), (2, 24), None) == ((2, 24)))
    assert(order.reached(Vector(at(2, Some(26)), NoPosition, NoPosition), (2, 24), None) ==
      ((2, 26)))
  }

  test("ranks that stopped at different batches, or inside one, are refused") {
    val order = GlobalOrder(12, 3)
    def refused(all: Option[Long], saved: SavedPosition*): String =
      intercept[ConfigException](order.reached(saved.toVector, Begin, all)).getMessage
    assert(refused(None, at(0, Some(4)), at(0, Some(20)), at(0, Some(12))) ==
      "--resume-positions: the ranks have consumed 1, 2, 1 batches of epoch 0: all ranks must save their positions after " +
      "the same batch")
    assert(refused(None, at(1, None), at(1, Some(20)), at(1, Some(24))).contains("0, 2, 2 batches"))
    assert(refused(None, at(0, Some(4)), at(1, Some(8)), at(1, None)).contains("1, all, all"))
    assert(refused(None, at(0, Some(2)), at(0, Some(8)), at(0, Some(12)))
        .contains("0 and a part, 1, 1 batches"))
    // With the number of elements also what else could be the end of the epoch.
    val (inside, early) =
      (Seq(at(0, Some(14)), at(0, Some(8)), at(0, Some(12))),
        Seq(at(0, Some(4)), at(1, None),
          at(1, None)))
    assert(order.reached(inside.toVector, Begin, Some(14)) == ((0, 14)))
    assert(refused(Some(36), inside: _*).contains("1 and a part, 1, 1 batches"))
    assert(order.reached(early.toVector, Begin, Some(15)) == ((0, 12)))
    assert(refused(Some(36), early: _*).contains("1, all, all"))
  }

  test("the plan has all partitions for each rank, in one order") {
    val plan = Plan(7, 3, 4, seed = 5, globalBatch = Some(12))
    for (epoch <- 0 until 4)
      assert((0 until 3).map(plan.order(_, epoch)).distinct.size == 1)
    assert((0 until 4).map(plan.order(0, _)).distinct.size > 1)
    assert((0 until 4).map(plan.order(0, _)) == (0 until 4).map(plan.copy(ranks = 2).order(1, _)))
    assert(plan.rankElements(Some(Vector.fill(7)(10L))).contains(Seq(70, 70, 70)))
    val resumed = plan.copy(epochs = 1, doneElements = 60)
    assert(resumed.elementsOfAllEpochs(Some(Vector.fill(7)(10L))).contains(30L))
    assert(plan.copy(doneElements = 2).isRest(0) && !plan.isRest(0))
    assert(plan.fingerprint(None) != plan.copy(globalBatch = Some(24)).fingerprint(None))
    assert(plan.fingerprint(None) == plan.copy(firstEpoch = 1, doneElements = 3).fingerprint(None))
    assert(plan.fingerprint(None) == plan.copy(ranks = 5).fingerprint(None))
  }

  test("a batch has an element for each rank") {
    val error = intercept[ConfigException](GlobalOrder(2, 3))
    assert(
      error.getMessage == "--global-batch is 2, and there are 3 ranks: it must have an element for each")
  }

  private val Begin = (0, 0L)
  private val NoPosition = SavedPosition(Position.Start, 0)

  private def at(epoch: Int, done: Option[Long]) =
    SavedPosition(Position(epoch, done.map(0 -> _)), 1)
}
