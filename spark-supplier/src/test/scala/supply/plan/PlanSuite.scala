package supply.plan

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite

import supply.protocol.Exchange
import supply.testing.AllCases

class PlanSuite extends AnyFunSuite with AllCases {
  private val plans = for {
    partitions <- Gen.choose(0, 60)
    ranks <- Gen.choose(1, 9)
    epochs <- Gen.choose(1, 4)
    seed <- Gen.long
  } yield Plan(partitions, ranks, epochs, seed)

  test("in every epoch every partition belongs to exactly one rank") {
    forAll(plans) { plan =>
      for (epoch <- 0 until plan.epochs) {
        val all = (0 until plan.ranks).flatMap(plan.order(_, epoch))
        assert(all.sorted == (0 until plan.partitions))
      }
    }
  }

  test(
    "a rank keeps its partitions from epoch to epoch, and shares differ by one partition at most") {
    forAll(plans) { plan =>
      for (rank <- 0 until plan.ranks; epoch <- 0 until plan.epochs) {
        assert(plan.order(rank, epoch).sorted == plan.partitionsOf(rank))
      }
      val sizes = (0 until plan.ranks).map(plan.partitionsOf(_).size)
      assert(sizes.max - sizes.min <= 1)
    }
  }

  test("the elements of a rank are those of its partitions, if they are counted") {
    val plan = Plan(5, 2, 3, seed = 7)
    assert(plan.rankElements(Some(Vector(1, 10, 100, 1000, 10000))).contains(Seq(10101, 1010)))
    assert(plan.rankElements(None).isEmpty)
  }

  test("the same arguments give the same plan") {
    forAll(plans) { plan =>
      val again = plan.copy()
      for (rank <- 0 until plan.ranks; epoch <- 0 until plan.epochs)
        assert(plan.order(rank, epoch) == again.order(rank, epoch))
    }
  }

  test("another seed, another epoch and another rank give another order") {
    val plan = Plan(100, 2, 2, seed = 7)
    assert(plan.order(0, 0) != plan.copy(seed = 8).order(0, 0))
    assert(plan.order(0, 0) != plan.order(0, 1))
    assert(plan.order(0, 0).map(_ / 2) != plan.order(1, 0).map(_ / 2))
  }

  test("plans with another meaning of a position have another fingerprint, and none has 0") {
    val plan = Plan(10, 2, 1, seed = 42)
    assert(plan.fingerprint(Some(5)) == plan.copy(epochs = 9).fingerprint(Some(5)))
    val others = Seq(plan.copy(partitions = 11), plan.copy(ranks = 3), plan.copy(seed = 43)).map(
      _.fingerprint(Some(5))) ++
      Seq(plan.fingerprint(Some(6)), plan.fingerprint(None)) ++ other(plan).map(
        _.fingerprint(Some(5)))
    assert((others :+ plan.fingerprint(Some(5)) :+ 0L).distinct.size == others.size + 2)
  }

  /** Plans that differ in their shuffle or their equal steps. */
  private def other(plan: Plan): Seq[Plan] = {
    val ranks = (0 until plan.ranks).map(plan.partitionsOf)
    val steps = for (step <- Seq(1, 2); isPadded <- Seq(false, true))
      yield EqualSteps(Vector.fill(10)(8L), ranks, step, isPadded)
    Seq(Shuffle.Off, Shuffle.Elements(10), Shuffle.Elements(11), Shuffle.All(),
      Shuffle.All(10), Shuffle.All(11)).map(how => plan.copy(shuffle = how)) ++
      (steps :+ EqualSteps(Vector.fill(10)(9L), ranks, 1, isPadded = true)).map(equal =>
        plan.copy(equalSteps = Some(equal)))
  }

  test("before an exchange a rank gets what it gets without one, in the same order") {
    val plan = Plan(10, 3, 4, seed = 8)
    val exchanged = plan.copy(shuffle = Shuffle.All(700000))
    for (rank <- 0 until 3; epoch <- 0 until 4)
      assert(exchanged.parts(rank, epoch) == plan.parts(rank, epoch))
    assert(exchanged.exchange == Exchange.all(seed = 8, fraction = 700000))
    Seq(Shuffle.Off, Shuffle.Partitions, Shuffle.Elements(2)).foreach(how =>
      assert(plan.copy(shuffle = how).exchange == Exchange.Off))
  }

  test("without a shuffle a rank gets its partitions in the order of the source, in every epoch") {
    val plan = Plan(10, 3, 2, seed = 1, shuffle = Shuffle.Off)
    for (epoch <- 0 until 2) assert(plan.order(1, epoch) == Seq(1, 4, 7))
  }

  test("the order of a partition's elements has a seed of its own in each epoch") {
    val seeds = for (seed <- 0 until 3; partition <- 0 until 10; epoch <- 0 until 10)
      yield Plan(10, 2, 10, seed.toLong).elementSeed(partition, epoch)
    assert(seeds.distinct.size == seeds.size)
  }

  test("the order never changes: a saved position must mean the same in the next release") {
    assert(Plan(10, 2, 1, seed = 42).order(0, 0) == Seq(0, 6, 4, 2, 8))
  }
}
