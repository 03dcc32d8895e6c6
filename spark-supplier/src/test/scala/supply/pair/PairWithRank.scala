package supply.pair

import java.nio.file.{Files, Paths}

import supply.bench.DatumCursor
import supply.block.BlockWriter
import supply.lmdb.Datum
import supply.testing.{TemporaryFolder, TestRank}

/** A real rank, and the task's side of its pair, for tests that check either step by step. */
trait PairWithRank {
  protected val timeout = 20.0
  protected val run = 77L

  /** A rank that has not opened its pair. */
  protected def withRank(body: TestRank => Unit): Unit = TemporaryFolder { folder =>
    val rank = new TestRank(TestRank.configFiles(folder, 1).read().head)
    try body(rank)
    finally {
      rank.kill()
      Seq(rank.paths.mappedFile, rank.paths.requestPipe, rank.paths.notificationPipe)
        .foreach(path => Files.deleteIfExists(Paths.get(path)))
    }
  }

  /** A rank that has opened its pair, and a task attached to it. */
  protected def withPair(ringBytes: Long = 8192, seconds: Double = timeout,
      blockBytes: Long = 4096)(body: (TestRank, Pair) => Unit): Unit = withRank { rank =>
    assert(rank.open(ringBytes, blockBytes) == "OK")
    attached(rank, seconds = seconds)(body(rank, _))
  }

  protected def attach(rank: TestRank, attempt: Int = 0, seconds: Double = timeout): Pair =
    Pair.attach(Vector("pair 0" -> rank.paths), attempt, seconds, run)

  protected def attached[A](rank: TestRank, attempt: Int = 0, seconds: Double = timeout)(
      body: Pair => A): A = {
    val pair = attach(rank, attempt, seconds)
    try body(pair)
    finally pair.close()
  }

  protected def datum(i: Int, bytes: Int): Datum.Tuple =
    (s"key-$i", i.toString, 1, 1, bytes, i % 2 == 0, Array.fill(bytes)(1.toByte))

  protected def supply(pair: Pair, elements: Seq[Datum.Tuple], from: Long = 0,
      blockElements: Int = Int.MaxValue): BlockWriter = {
    val writer = new BlockWriter(pair, Datum.schema, Some(Datum.Data), blockElements)
    writer.startAt(0, 0, from)
    val cursor = new DatumCursor(elements.iterator)
    while (cursor.next()) writer.append(cursor)
    writer.flush()
    writer
  }
}
