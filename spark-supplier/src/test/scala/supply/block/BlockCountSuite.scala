package supply.block

import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumCursor
import supply.lmdb.Datum
import supply.pair.PairWithRank
import supply.protocol.Layout.MappedFileHeader
import supply.testing.TestStream

/** BlockCount counts the blocks that BlockWriter writes. */
class BlockCountSuite extends AnyFunSuite with PairWithRank {
  private val partitions = 5

  private def tuples(partition: Int): DatumCursor = new DatumCursor((0 until 70).iterator.map(i =>
      (f"$i%08d", "1", 1, 1, i, false, Array.fill((partition + 1) * i * 37 % 2000)(i.toByte))))

  private def written(blockElements: Int): Long = {
    var blocks = 0L
    withPair(ringBytes = 500L * 4096) { (rank, pair) =>
      val writer = new BlockWriter(pair, Datum.schema, Some(Datum.Data), blockElements)
      (0 until partitions).foreach { partition =>
        writer.startAt(0, partition, 0)
        val cursor = tuples(partition)
        while (cursor.next()) writer.append(cursor)
        writer.flush()
      }
      blocks = TestStream.header(rank)(_.getLong(MappedFileHeader.published))
    }
    blocks
  }

  private def counted(blockElements: Int): Long = {
    val count = new BlockCount(4096, Datum.schema, blockElements)
    (0 until partitions).foreach { partition =>
      val cursor = tuples(partition)
      while (cursor.next()) count.append(cursor)
      count.close()
    }
    count.blocks
  }

  Seq(Int.MaxValue, 2).foreach { blockElements =>
    test(s"blocks of at most $blockElements elements") {
      assert(written(blockElements) > 100)
      assert(counted(blockElements) == written(blockElements))
    }
  }
}
