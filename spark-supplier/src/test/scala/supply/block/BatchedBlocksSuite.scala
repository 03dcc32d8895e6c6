package supply.block

import org.scalatest.funsuite.AnyFunSuite

import supply.bench.{DatumBatch, DatumBatchCursor, DatumCursor}
import supply.lmdb.Datum
import supply.source.{BatchCursor, ElementCursor, ElementWriter}

/** Elements that are written many at once make the same blocks as one by one. */
class BatchedBlocksSuite extends AnyFunSuite with WrittenBlocks {

  /**
   * Elements of all sizes up to nearly a block. Many are so small that a block has more elements
   * than bytes of data.
   */
  private val tuples: Seq[Datum.Tuple] = (0 until 3000).map { i =>
    val bytes = if (i % 100 == 99) 2800 + i % 400 else i * 37 % (if (i < 1500) 7 else 300)
    (f"$i%d" * (i % 3), s"${i * 1000003}", i, -i, bytes, i % 3 == 0,
      Array.tabulate(bytes)(at => (at + i).toByte))
  }

  private def single: DatumCursor = new DatumCursor(tuples.iterator)

  private def batched: DatumBatchCursor = new DatumBatchCursor(DatumBatch.of(single))

  private def blocks(cursor: ElementCursor, blockElements: Int, first: Long): Seq[Seq[Any]] = {
    val written = blocks(cursor, Datum.schema, Some(Datum.Data), blockElements, first)
    assert(elements(written) == tuples.size - first)
    written
  }

  for (blockElements <- Seq(Int.MaxValue, 7); first <- Seq(0L, 1234L)) {
    test(s"blocks of at most $blockElements elements, from element $first on") {
      val oneByOne = blocks(single, blockElements, first)
      assert(oneByOne.size > 50)
      assert(blocks(batched, blockElements, first) == oneByOne)
    }
  }

  test("a batch is supplied by fewer calls than it has elements") {
    val counting = new CountingCursor(batched)
    blocks(counting, Int.MaxValue, 0)
    assert(counting.many > 0)
    assert(counting.moves < tuples.size / 3, s"${counting.moves} moves for ${tuples.size} elements")
  }
}

private final class CountingCursor(cursor: BatchCursor) extends BatchCursor {
  var moves = 0
  var many = 0

  override def next(): Boolean = { moves += 1; cursor.next() }
  override def write(to: ElementWriter): Unit = cursor.write(to)
  override def ready: Int = cursor.ready
  override def bytes(count: Int): Long = cursor.bytes(count)
  override def write(to: ElementWriter, count: Int): Unit = {
    if (count > 1) many += 1; cursor.write(to, count)
  }
  override def describe: String = cursor.describe
  override def close(): Unit = cursor.close()
}
