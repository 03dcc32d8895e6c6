package supply.plan

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite

import supply.core.SourceException
import supply.testing.AllCases

class EqualStepsSuite extends AnyFunSuite with AllCases {

  private def plan(counted: Seq[Long], ranks: Int, step: Int, isPadded: Boolean): Plan = {
    val all = Plan(counted.size, ranks, 3, seed = 5)
    all.copy(equalSteps = Some(EqualSteps(counted.toIndexedSeq,
        (0 until ranks).map(all.partitionsOf), step, isPadded)))
  }

  private val cases = for {
    ranks <- Gen.choose(1, 5)
    step <- Gen.choose(1, 20)
    counted <- Gen.listOfN(ranks * 4, Gen.choose(20L, 90L))
  } yield (counted, ranks, step)

  private def supplied(plan: Plan, rank: Int, epoch: Int): Seq[(Int, Long)] =
    plan.parts(rank, epoch).map(part => part.partition -> part.share.get.supplied)

  test(
    "in every epoch every rank gets the whole steps of the rank with the fewest, or with the most") {
    forAll(cases) { case (counted, ranks, step) =>
      Seq(false, true).foreach { isPadded =>
        val planned = plan(counted, ranks, step, isPadded)
        def whole(n: Long) =
          (if (isPadded) math.ceil(n.toDouble / step) else math.floor(n.toDouble / step)).toLong
        val each = (0 until ranks).map(
          planned.partitionsOf(_).map(partition => whole(counted(partition))).sum)
        val expected = if (isPadded) each.max else each.min
        for (epoch <- 0 until 3; rank <- 0 until ranks) {
          val shares = supplied(planned, rank, epoch)
          assert(shares.forall(_._2 % step == 0) && shares.map(_._2).sum == expected * step)
          if (isPadded) shares.foreach { case (partition, n) => assert(n >= counted(partition)) }
          else shares.foreach { case (partition, n) => assert(n <= counted(partition)) }
        }
        assert(planned.rankElements(None).contains(Seq.fill(ranks)(expected * step)))
        assert(planned.elements(None).contains(expected * step * ranks))
      }
    }
  }

  test(
    "the elements that are left out or come again belong to another partition in another epoch") {
    val counted = Seq.fill(20)(10L) ++ Seq(10L)
    def odd(isPadded: Boolean) = (0 until 3).map { epoch =>
      val planned = plan(counted, 2, 1, isPadded)
      val all = planned.parts(if (isPadded) 1 else 0, epoch)
      // Rank 0 has one partition more than rank 1.
      if (isPadded) all.find(_.share.get.supplied > 10).get.partition
      else planned.partitionsOf(0).diff(all.map(_.partition)).head
    }
    assert(odd(isPadded = false).distinct.size > 1)
    assert(odd(isPadded = true).distinct.size > 1)
  }

  test("partitions without elements give none, and no step is added to them") {
    val planned = plan(Seq(7, 5, 0, 0), ranks = 2, step = 1, isPadded = true)
    (0 until 3).foreach { epoch => assert(supplied(planned, 1, epoch) == Seq(1 -> 7L)) }
  }

  test("the message names a rank with too few elements for a step") {
    def message(isPadded: Boolean, counted: Long*) =
      intercept[SourceException](plan(counted, 2, 4, isPadded)).getMessage
    assert(message(isPadded = true, 5, 0, 5, 0).contains("rank 1 has no element"))
    assert(message(isPadded = false, 5, 3, 5, 3).contains(
        "rank 1 has no partition with 4 elements"))
  }
}
