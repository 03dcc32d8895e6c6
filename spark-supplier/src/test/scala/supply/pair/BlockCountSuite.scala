package supply.pair

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.file.{Files, Paths}

import org.scalatest.funsuite.AnyFunSuite

import supply.protocol.Layout.MappedFileHeader
import supply.sources.{Datum, DatumCursor}
import supply.testing.{TemporaryFolder, TestRank}

/** What is counted is what is written. */
class BlockCountSuite extends AnyFunSuite {
  private val partitions = 5

  private def tuples(partition: Int): DatumCursor = new DatumCursor((0 until 70).iterator.map(i =>
      (f"$i%08d", "1", 1, 1, i, false, Array.fill((partition + 1) * i * 37 % 2000)(i.toByte))))

  private def written(blockElements: Int): Long = TemporaryFolder { folder =>
    val rank = new TestRank(TestRank.configFiles(folder, 1).read().head)
    try {
      rank.open(ringBytes = 500L * 4096)
      val pair = Pair.attach("pair 0", rank.paths, 0, 20)
      try {
        val writer = new BlockWriter(pair, Datum.schema, Some(Datum.Data), blockElements)
        (0 until partitions).foreach { partition =>
          writer.startAt(0, partition, 0)
          val cursor = tuples(partition)
          while (cursor.next()) writer.append(cursor)
          writer.flush()
        }
      } finally pair.close()
      ByteBuffer.wrap(Files.readAllBytes(Paths.get(rank.paths.mappedFile))).order(
        ByteOrder.LITTLE_ENDIAN)
        .getLong(MappedFileHeader.published)
    } finally {
      rank("abort the blocks have been counted")
      rank.close()
    }
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
