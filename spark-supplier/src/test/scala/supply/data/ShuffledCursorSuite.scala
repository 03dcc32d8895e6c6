package supply.data

import java.nio.{ByteBuffer, ByteOrder}

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

class ShuffledCursorSuite extends AnyFunSuite with ScalaCheckPropertyChecks {
  import ShuffledCursorSuite._

  private def shuffled(elements: Int, buffer: Int, seed: Long): Seq[Int] =
    all(ShuffledCursor(new Numbers(elements), buffer, seed)).map(_.head.asInstanceOf[Int])

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
    // Each element comes first about 1000 times of 4000. A difference of 250 is 9 standard deviations.
    val first = (0 until 4000).map(seed => shuffled(4, buffer = 4, seed = seed.toLong * 7919).head)
    assert((0 until 4).forall(element => math.abs(first.count(_ == element) - 1000) < 250))
  }

  test("the order never changes: a saved position must mean the same in the next release") {
    assert(shuffled(8, buffer = 4, seed = 42) == Seq(2, 0, 4, 5, 1, 3, 7, 6))
  }

  test(
    "values of every kind and size are kept, also in reused memory") {
    val seen = all(ShuffledCursor(new Numbers(200), 16, seed = 1))
    assert(seen.sortBy(_.head.asInstanceOf[Int]) == all(new Numbers(200)))
  }
}

private object ShuffledCursorSuite {

  /** Element i: i as an int, and values of all other kinds computed from it. */
  final class Numbers(elements: Int) extends ElementCursor {
    private var i = -1
    override def next(): Boolean = { i += 1; i < elements }
    override def write(to: ElementWriter): Unit = {
      to.putInt(0, i)
      to.putLong(1, Long.MaxValue - i)
      to.putBoolean(2, i % 2 == 0)
      if (i % 3 == 0) to.putNull(3) else to.putInt(3, -i)
      to.reserve(4, i * i).put(Array.tabulate(i * i)(k => (k + i).toByte))
      ()
    }
    override def describe: String = s"element $i"
    override def close(): Unit = ()
  }

  /** The values of each element. */
  def all(cursor: ElementCursor): Seq[Seq[Any]] = {
    val seen = Seq.newBuilder[Seq[Any]]
    while (cursor.next()) {
      val values = new Values
      cursor.write(values)
      seen += values.all
    }
    seen.result()
  }

  private final class Values extends ElementWriter {
    private val values = Seq.newBuilder[() => Any]
    def all: Seq[Any] = values.result().map(_.apply())
    override def putInt(column: Int, value: Int): Unit = { values += (() => value); () }
    override def putBoolean(column: Int, value: Boolean): Unit = {
      values += (() => column -> value); ()
    }
    override def putNull(column: Int): Unit = { values += (() => column -> null); () }
    override def reserve(column: Int, bytes: Int): ByteBuffer = {
      val space = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN)
      values += (() => column -> space.array.toSeq)
      space
    }
  }
}
