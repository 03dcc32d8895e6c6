package supply.plan

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite

import supply.core.ConfigException
import supply.protocol.Position
import supply.testing.AllCases

/** Runs that stop anywhere, and continue with other numbers of ranks. */
class RestSuite extends AnyFunSuite with AllCases {
  import RestSuite._

  private val shuffles =
    Gen.oneOf[Shuffle](Shuffle.Off, Shuffle.Partitions, Shuffle.Elements(buffer = 3))

  /** Elements of each partition, the number of ranks of each run, and seeds. */
  private val cases = for {
    sizes <- Gen.choose(0, 20).flatMap(Gen.listOfN(_, Gen.choose(0L, 5L)))
    ranks <- Gen.choose(2, 4).flatMap(Gen.listOfN(_, Gen.choose(1, 6)))
    seed <- Gen.long
    shuffle <- shuffles
    isCounted <- Gen.oneOf(true, false)
  } yield Case(sizes.toIndexedSeq, ranks, seed, shuffle, isCounted)

  test("however often a run stops and continues, each epoch has every element exactly once") {
    forAll(cases, minSuccessful(2000)) { run =>
      val random = new scala.util.Random(run.seed)
      var plan = run.plan(run.ranks.head)
      var seen = Seq.empty[Element]
      run.ranks.tail.foreach { ranks =>
        val epoch = plan.firstEpoch + random.nextInt(2)
        val stops = (0 until plan.ranks).map(rank => stop(plan, rank, epoch, run.sizes, random))
        seen ++= stops.flatMap(_.consumed)
        plan = Resume(plan, stops.map(_.position), run.plan(ranks), run.counted)
      }
      seen ++= (0 until plan.ranks).flatMap(rank =>
        plan.epochNumbers.flatMap(elements(plan, rank, _, run.sizes)))
      val all = for (epoch <- 0 until Epochs; partition <- run.sizes.indices;
        element <- 0L until run.sizes(partition)) yield Element(epoch, partition, element)
      assert(seen.sorted == all.sorted)
    }
  }

  test("the same arguments give the same plan, and other positions another fingerprint") {
    forAll(cases) { run =>
      val random = new scala.util.Random(run.seed)
      val plan = run.plan(run.ranks.head)
      val positions = (0 until plan.ranks).map(stop(plan, _, 0, run.sizes, random).position)
      def resumed(positions: IndexedSeq[Position]) =
        Resume(plan, positions, run.plan(run.ranks.last), run.counted)
      assert(resumed(positions) == resumed(positions))
      val next = resumed(positions)
      val whole = next.copy(rest = None)
      assert(next.rest.isEmpty || next.fingerprint(None) != whole.fingerprint(None))
      val begun = resumed(positions.map(_ => Position.Start))
      assert(next.rest == begun.rest || next.fingerprint(None) != begun.fingerprint(None))
    }
  }

  test("the elements of a partition continue in the order that they had") {
    val plan = Plan(8, 4, 2, seed = 3, Shuffle.Elements(5))
    val next = Resume(plan,
      IndexedSeq(Position(1, None), inside(0, 1, 2), inside(0, 2, 1),
        inside(0, 3, 1)), plan.copy(ranks = 3), None)
    for (partition <- 0 until 8)
      assert(next.elementSeed(partition, 0) == plan.elementSeed(partition, 0))
  }

  test("the rest is spread by elements if they are known, and else by partitions") {
    // Rank 0 has stopped in its first partition, the others have none left.
    val plan = Plan(12, 3, 1, seed = 0, Shuffle.Off)
    val positions = IndexedSeq(inside(0, 0, 90), Position(1, None), Position(1, None))
    val counted = Vector(100L, 1, 1, 30, 1, 1, 10, 1, 1, 10, 1, 1)
    def left(partitionElements: Option[IndexedSeq[Long]]) =
      Resume(plan, positions, plan.copy(ranks = 2), partitionElements).rest.get
    assert(left(Some(counted)).left == Seq(Seq(Part(3)), Seq(Part(0, 90), Part(6), Part(9))))
    assert(left(Some(counted)).elements(Some(counted)).contains(60L))
    assert(left(None).left == Seq(Seq(Part(0, 90), Part(6)), Seq(Part(3), Part(9))))
  }

  test("a run that has stopped between two epochs continues with a whole epoch") {
    val plan = Plan(6, 3, 5, seed = 0)
    val next = Resume(plan, IndexedSeq.fill(3)(Position(2, None)), plan.copy(ranks = 2), None)
    assert(next == plan.copy(ranks = 2, firstEpoch = 2, epochs = 3))
    assert(next.fingerprint(None) == plan.copy(ranks = 2).fingerprint(None))
  }

  test("a run that has ended has nothing left") {
    val plan = Plan(6, 3, 2, seed = 0)
    Seq(2, Int.MaxValue).foreach { epoch =>
      val next = Resume(plan, IndexedSeq.fill(3)(Position(epoch, None)), plan, None)
      assert(
        next.epochNumbers.isEmpty && next.elementsOfAllEpochs(Some(Vector.fill(6)(1L))).contains(
          0L))
    }
  }

  test("positions that are not those of one moment are refused, and the ranks are named") {
    val plan = Plan(6, 3, 5, seed = 0, Shuffle.Off)
    def message(positions: Position*) =
      intercept[ConfigException](Resume(plan, positions.toIndexedSeq, plan, None)).getMessage
    assert(message(Position(1, None), Position(3, None), Position(1, None)).contains(
        "rank 0 of 3 stopped in epoch 1, and rank 1 in epoch 3"))
    assert(message(inside(2, 0, 4), Position(2, None), inside(1, 2, 1)).contains(
        "rank 2 of 3 stopped in epoch 1, and rank 0 in epoch 2"))
    assert(message(inside(1, 1, 4), inside(1, 0, 4), inside(1, 2, 1)).contains(
        "rank 0 of 3 cannot have stopped in partition 1"))
  }

  test("with equal steps each rank makes the same number of steps in the rest") {
    val cases = for {
      ranks <- Gen.choose(1, 4)
      next <- Gen.choose(1, 4)
      step <- Gen.choose(1, 4)
      sizes <- Gen.listOfN(16, Gen.choose(4L, 20L))
      seed <- Gen.long
      isPadded <- Gen.oneOf(true, false)
    } yield (Case(sizes.toIndexedSeq, Seq(ranks, next), seed, Shuffle.Partitions, true), step, isPadded)
    forAll(cases, minSuccessful(500)) { case (run, step, isPadded) =>
      val random = new scala.util.Random(run.seed)
      val plan = run.even(run.ranks.head, step, isPadded)
      // Each rank has still something left, so that there is something to repeat.
      val stops = (0 until plan.ranks).map(stop(plan, _, 0, run.sizes, random, most = 10))
      val resumed =
        Resume(plan, stops.map(_.position), run.even(run.ranks.last, step, isPadded), run.counted)
      val rest = (0 until resumed.ranks).map(elements(resumed, _, 0, run.sizes))
      assert(rest.map(_.size).distinct.size == 1 && rest.head.size % step == 0)
      assert(resumed.elementsOfAllEpochs(run.counted).contains(
          rest.map(_.size).sum + 2 * resumed.elements(None).get))
      val seen = stops.flatMap(_.consumed) ++ rest.flatten
      if (isPadded) assert(seen.map(_.partition).toSet == run.sizes.indices.toSet)
      val expected =
        for (partition <- run.sizes.indices; element <- 0L until run.sizes(partition))
          yield Element(0, partition, element)
      if (isPadded) assert(expected.toSet == seen.toSet) else assert(seen.distinct == seen)
    }
  }

  test("equal steps: a rest with less than a step for each rank is left out, or is repeated") {
    val run = Case(Vector.fill(2)(4L), Seq(2, 3), 0, Shuffle.Off, isCounted = true)
    def rest(isPadded: Boolean, positions: Position*) = {
      val plan = Resume(run.even(2, 4, isPadded), positions.toIndexedSeq,
        run.even(2, 4, isPadded), run.counted)
      (0 until 2).map(elements(plan, _, 0, run.sizes).size)
    }
    assert(rest(isPadded = false, inside(0, 0, 3), inside(0, 1, 2)) == Seq(0, 0))
    assert(rest(isPadded = true, inside(0, 0, 3), inside(0, 1, 2)) == Seq(4, 4))
    assert(rest(isPadded = true, inside(0, 0, 4), inside(0, 1, 4)) == Seq(0, 0))
    assert(intercept[ConfigException](rest(isPadded = true, inside(0, 0, 3), inside(0, 1, 4)))
        .getMessage.contains("rank 1 of 2 gets nothing of the rest of epoch 0"))
  }

  test("ranks that exchanged elements continue at the end of an epoch, and nowhere else") {
    val plan = Plan(8, 2, 3, seed = 3, Shuffle.All())
    def resumed(positions: Position*) =
      Resume(plan, positions.toIndexedSeq, plan.copy(ranks = 3), None)
    val next = resumed(Position(1, None), Position(1, None))
    assert(next == plan.copy(ranks = 3, firstEpoch = 1, epochs = 2))
    assert(resumed(Position.Start, Position.Start) == plan.copy(ranks = 3))
    Seq(Seq(Position(2, None), Position(1, None)), Seq(Position(1, None), inside(1, 1, 2)),
      Seq(inside(1, 0, 2), inside(1, 0, 2))).foreach { positions =>
      val message = intercept[ConfigException](resumed(positions: _*)).getMessage
      assert(message.contains("(--shuffle all)") && message.contains("at the end of an epoch"))
    }
  }

  test(
    "the plan of a rest never changes: a saved position must mean the same in the next release") {
    val plan = Plan(10, 2, 1, seed = 42)
    val next =
      Resume(plan, IndexedSeq(inside(0, 6, 3), inside(0, 1, 0)), plan.copy(ranks = 3), None)
    assert(next.rest.get.left == Golden && next.fingerprint(Some(50)) == GoldenFingerprint)
  }
}

private object RestSuite {
  private val Epochs = 7
  private val Golden = Seq(Seq(Part(1), Part(6, 3)), Seq(Part(2), Part(8)), Seq(Part(4)))
  private val GoldenFingerprint = 8569339263215309452L

  /** The element at this place in the order of its partition in that epoch. */
  final case class Element(epoch: Int, partition: Int, place: Long)

  implicit val ordering: Ordering[Element] = Ordering.by(e => (e.epoch, e.partition, e.place))

  final case class Case(sizes: IndexedSeq[Long], ranks: Seq[Int], seed: Long, shuffle: Shuffle,
      isCounted: Boolean) {
    def plan(ranks: Int): Plan = Plan(sizes.size, ranks, Epochs, seed, shuffle)

    def even(ranks: Int, step: Int, isPadded: Boolean): Plan = {
      val all = plan(ranks).copy(epochs = 3)
      all.copy(equalSteps =
        Some(EqualSteps(sizes, (0 until ranks).map(all.partitionsOf), step, isPadded)))
    }

    def counted: Option[IndexedSeq[Long]] = if (isCounted) Some(sizes) else None
  }

  final case class Stop(position: Position, consumed: Seq[Element])

  def inside(epoch: Int, partition: Int, element: Long): Position =
    Position(epoch, Some(partition -> element))

  /** What PairSupply supplies, in order; a repeated element has the place of the first one. */
  def elements(plan: Plan, rank: Int, epoch: Int, sizes: IndexedSeq[Long]): Seq[Element] =
    places(plan, rank, epoch, sizes).map(e => e.copy(place = e.place % sizes(e.partition)))

  private def places(plan: Plan, rank: Int, epoch: Int, sizes: IndexedSeq[Long]): Seq[Element] =
    for {
      part <- plan.parts(rank, epoch)
      place <- part.done until part.share.fold(sizes(part.partition))(_.supplied)
    } yield Element(epoch, part.partition, place)

  /** Stops a rank somewhere in an epoch, at most after `most` elements of it. */
  def stop(plan: Plan, rank: Int, epoch: Int, sizes: IndexedSeq[Long],
      random: scala.util.Random, most: Int = Int.MaxValue): Stop = {
    val earlier = (plan.firstEpoch until epoch).flatMap(places(plan, rank, _, sizes))
    val all = places(plan, rank, epoch, sizes)
    val consumed = all.take(random.nextInt(math.min(all.size, most) + 1))
    val isEnded = consumed.size == all.size && random.nextBoolean()
    val isFirst = epoch == plan.firstEpoch
    val position = consumed.lastOption match {
      case _ if isEnded => Position(epoch + 1, None)
      case Some(last) => inside(epoch, last.partition, last.place + 1)
      // A rank that has received nothing knows no epoch.
      case None => if (isFirst) Position.Start else Position(epoch, None)
    }
    Stop(position, (earlier ++ consumed).map(e => e.copy(place = e.place % sizes(e.partition))))
  }
}
