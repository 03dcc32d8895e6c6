package supply.lmdb

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.ISO_8859_1

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumCursor
import supply.source.{ElementCursor, ShuffledCursor}
import supply.testing.AllCases

class DatumBatchSuite extends AnyFunSuite with AllCases {
  private val bytes = Gen.oneOf(Gen.choose(0, 40), Gen.choose(100000, 600000)).flatMap { n =>
    Gen.choose(0, 255).map(first => Array.tabulate(n)(i => (first + 31 * i).toByte))
  }

  private val tuples: Gen[Datum.Tuple] = for {
    key <- Gen.listOf(Gen.choose('\u0000', '\u00ff')).map(_.mkString)
    label <- Gen.choose(Int.MinValue, Int.MaxValue)
    shape <- Gen.listOfN(3, Gen.choose(-1, 1000))
    encoded <- Gen.oneOf(true, false)
    data <- bytes
  } yield (key, label.toString, shape(0), shape(1), shape(2), encoded, data)

  /** Takes the columns of one element and returns its values. */
  private final class Element extends DatumWriter {
    private val numbers = new Array[Int](7)
    private var encoded = false
    private var key, data = ByteBuffer.allocate(0)

    override def putInt(column: Int, value: Int): Unit = numbers(column) = value
    override def putBoolean(column: Int, value: Boolean): Unit = encoded = value
    override def reserve(column: Int, bytes: Int): ByteBuffer = {
      val space = ByteBuffer.allocate(bytes)
      if (column == Datum.Key) key = space else data = space
      space
    }

    def values: Seq[Any] = Seq(
      new String(key.array, ISO_8859_1),
      numbers(Datum.Label).toString,
      numbers(Datum.Channels),
      numbers(Datum.Height),
      numbers(Datum.Width),
      encoded,
      data.array.toSeq)
  }

  private def elements(cursor: ElementCursor): Seq[Seq[Any]] =
    Iterator.continually(cursor.next()).takeWhile(identity).map { _ =>
      // An element that does not fit into a block is written again into the next one.
      val (first, second) = (new Element, new Element)
      cursor.write(first)
      cursor.write(second)
      assert(first.values == second.values)
      second.values
    }.toVector

  private def values(tuple: Datum.Tuple): Seq[Any] =
    tuple.productIterator.toSeq.init :+ tuple._7.toSeq

  test("batches hold the elements that they were made of, in order") {
    forAll(Gen.listOf(tuples), minSuccessful(40)) { all =>
      val batches = DatumBatch.of(new DatumCursor(all.iterator)).toVector
      assert(batches.map(_.elements).sum == all.size)
      assert(elements(new DatumBatchCursor(batches.iterator)) == all.map(values))
    }
  }

  test("shuffled batches have the order of shuffled tuples, for any buffer") {
    forAll(Gen.listOf(tuples), Gen.choose(1, 100), Gen.long, minSuccessful(40)) {
      (all, buffer, seed) =>
        val tuples = elements(new ShuffledCursor(new DatumCursor(all.iterator), buffer, seed))
        val batches = DatumBatch.of(new DatumCursor(all.iterator))
        assert(elements(new ShuffledCursor(new DatumBatchCursor(batches), buffer, seed)) == tuples)
        assert(tuples.toSet == all.map(values).toSet)
    }
  }

  test("a batch has at least one element, and the element that fills it closes it") {
    val element = ("key", "1", 1, 1, 1000, false, new Array[Byte](1000))
    val many = DatumBatch.of(new DatumCursor(Iterator.fill(2000)(element))).toVector
    assert(many.size == 8)
    assert(many.init.forall(batch =>
        batch.bytes.length >= DatumBatch.Bytes && batch.bytes.length < DatumBatch.Bytes + 1003))
    val large = ("key", "1", 1, 1, 1, false, new Array[Byte](3 * DatumBatch.Bytes))
    assert(DatumBatch.of(new DatumCursor(Iterator.fill(3)(large))).map(_.elements).toSeq == Seq(1,
      1, 1))
  }

  test("an element of a batch is named by its key, as supply-cat prints it") {
    val cursor = new DatumBatchCursor(DatumBatch.of(new DatumCursor(Iterator(("a\u00ff\\b", "1", 1,
              1, 1, false, new Array[Byte](3))))))
    assert(cursor.next())
    assert(cursor.describe == "the element 'a\\xff\\x5cb' (3 bytes of data)")
  }
}
