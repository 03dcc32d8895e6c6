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

  private def ofRank(order: GlobalOrder, rank: Int, elements: Long, doneBatches: Long = 0) = {
    val stripe = order.stripe(rank, doneBatches)
    (0L until elements).filter(stripe.own(_) >= stripe.done)
  }

  test("each element of an epoch is of one rank, which numbers its own from 0") {
    forAll(orders) { case (order, elements) =>
      val own = (0 until order.ranks).map(ofRank(order, _, elements))
      assert(own.flatten.sorted == (0L until elements))
      own.zipWithIndex.foreach { case (found, rank) =>
        assert(found.map(order.stripe(rank, 0).own(_)) == found.indices.map(_.toLong))
        assert(order.elements(rank, elements) == found.size)
      }
    }
  }

  test("the shares of a batch differ by one element at most, and each rank has one") {
    forAll(orders) { case (order, _) =>
      val shares = (0 until order.ranks).map(order.stripe(_, 0).share)
      assert(shares.sum == order.batch && shares.min >= 1 && shares.max - shares.min <= 1)
    }
  }

  test("a run is what follows of the rank's elements") {
    forAll(orders) { case (order, elements) =>
      for (rank <- 0 until order.ranks; index <- ofRank(order, rank, elements)) {
        val stripe = order.stripe(rank, 0)
        val end = index + stripe.run(index)
        assert((index until end).map(stripe.own(_) - stripe.own(index)) == (0L until end - index))
        assert(stripe.own(end) == -1 || stripe.share == stripe.batch || end % stripe.batch == 0)
      }
    }
  }

  test("other ranks continue after the same batch") {
    forAll(orders, Gen.choose(1, 9)) { case ((order, _), ranks) =>
      val other = GlobalOrder(math.max(order.batch, ranks), ranks)
      val (before, batches) = (GlobalOrder(other.batch, order.ranks min other.batch), 3L)
      val saved = (0 until before.ranks).map(rank =>
        at(2, Some(batches * before.stripe(rank, 0).share)))
      assert(before.reached(saved) == ((2, batches)))
      val rest = (0 until other.ranks).flatMap(ofRank(other, _, 5L * other.batch, batches))
      assert(rest.sorted == (batches * other.batch until 5L * other.batch))
    }
  }

  test("the end of an epoch, and a last batch that is smaller") {
    val order = GlobalOrder(12, 3)
    assert(order.reached(Vector(at(1, None), at(0, Some(13)), at(1, None))) == ((1, 0)))
    assert(order.reached(Vector(at(0, Some(14)), at(0, Some(16)), at(0, Some(13)))) == ((0, 4)))
    val error = intercept[ConfigException](
      order.reached(Vector(at(0, Some(4)), at(0, Some(8)), at(0, Some(4)))))
    assert(error.getMessage.contains("consumed 1, 2, 1 batches of epoch 0"))
  }

  test("the plan has all partitions for each rank, in one order") {
    val plan = Plan(7, 3, 4, seed = 5, globalBatch = Some(12))
    for (epoch <- 0 until 4)
      assert((0 until 3).map(plan.order(_, epoch)).distinct.size == 1)
    assert((0 until 4).map(plan.order(0, _)).distinct.size > 1)
    assert((0 until 4).map(plan.order(0, _)) == (0 until 4).map(plan.copy(ranks = 2).order(1, _)))
    assert(plan.rankElements(Some(Vector.fill(7)(10L))).contains(Seq(24, 24, 22)))
    assert(plan.copy(doneBatches = 2).isRest(0) && !plan.isRest(0))
    assert(plan.fingerprint(None) != plan.copy(globalBatch = Some(24)).fingerprint(None))
    assert(plan.fingerprint(None) == plan.copy(firstEpoch = 1, doneBatches = 3).fingerprint(None))
  }

  test("a batch has an element for each rank") {
    val error = intercept[ConfigException](GlobalOrder(2, 3))
    assert(
      error.getMessage == "--global-batch is 2, and there are 3 ranks: it must have an element for each")
  }

  private def at(epoch: Int, done: Option[Long]) =
    SavedPosition(Position(epoch, done.map(0 -> _)), 1)
}
