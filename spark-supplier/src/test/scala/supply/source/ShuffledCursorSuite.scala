package supply.source

import java.util.Random

import scala.collection.mutable

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite

import supply.testing.{AllCases, Elements}

class ShuffledCursorSuite extends AnyFunSuite with AllCases {
  import ShuffledCursorSuite._

  private def shuffled(elements: Int, buffer: Int, seed: Long): Seq[Int] =
    Elements.all(new ShuffledCursor(new Numbers(elements), buffer, seed)).map(
      _.head.asInstanceOf[Int])

  private val cases = for {
    elements <- Gen.choose(0, 300)
    buffer <- Gen.choose(1, 400)
    seed <- Gen.long
  } yield (elements, buffer, seed)

  test(
    "every element comes once, at most a buffer early, in an order that the seed fixes") {
    forAll(cases) { case (elements, buffer, seed) =>
      val seen = shuffled(elements, buffer, seed)
      assert(seen.sorted == (0 until elements))
      assert(seen.zipWithIndex.forall { case (element, at) => element < at + buffer })
      assert(shuffled(elements, buffer, seed) == seen)
    }
  }

  test(
    "a buffer of one element shuffles nothing; as large as the partition, it shuffles it fully") {
    assert(shuffled(50, buffer = 1, seed = 3) == (0 until 50))
    // Each element comes first in about 1000 of 4000. A difference of 250 is 9 standard deviations.
    val first = (0 until 4000).map(seed => shuffled(4, buffer = 4, seed = seed.toLong * 7919).head)
    assert((0 until 4).forall(element => math.abs(first.count(_ == element) - 1000) < 250))
  }

  test("draws are those of java.util.Random, whose sequence Java specifies") {
    forAll(Gen.long, Gen.choose(1, Int.MaxValue)) { (seed, bound) =>
      val (unshared, random) = (new UnsharedRandom(seed), new Random(seed))
      assert(
        (1 to 20).map(_ => unshared.nextInt(bound)) == (1 to 20).map(_ => random.nextInt(bound)))
    }
  }

  test("the order never changes: a saved position must mean the same in the next release") {
    assert(shuffled(8, buffer = 4, seed = 42) == Seq(2, 0, 4, 5, 1, 3, 7, 6))
  }
}

private object ShuffledCursorSuite {

  /** Element i has one value, i. */
  final class Numbers(elements: Int) extends KeepingCursor {
    private var newest = -1
    private var current = -1
    private val kept = mutable.Map.empty[Int, Int]

    override def next(): Boolean = {
      newest += 1
      current = newest
      newest < elements
    }

    override def keep(place: Int): Unit = kept(place) = current
    override def recall(place: Int): Unit = current = kept(place)
    override def write(to: ElementWriter): Unit = to.putInt(0, current)
    override def describe: String = s"element $current"
    override def close(): Unit = ()
  }
}
