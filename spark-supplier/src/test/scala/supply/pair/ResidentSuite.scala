package supply.pair

import java.nio.file.{Files, Paths}

import org.scalatest.funsuite.AnyFunSuite

import supply.protocol.Position
import supply.sources.{Datum, DatumCursor}
import supply.testing.{TemporaryFolder, TestRank}

/** Blocks that stay, against a real rank: proto/PROTOCOL.md, "Resident epochs". */
class ResidentSuite extends AnyFunSuite {
  private val timeout = 20.0

  private def withRank(blocks: Int)(body: TestRank => Unit): Unit = TemporaryFolder { folder =>
    val rank = new TestRank(TestRank.configFiles(folder, 1).read().head)
    try {
      assert(rank.open(ringBytes = blocks * 4096L, timeout = timeout) == "OK")
      body(rank)
    } finally {
      rank.kill()
      Seq(rank.paths.mappedFile, rank.paths.requestPipe, rank.paths.notificationPipe)
        .foreach(path => Files.deleteIfExists(Paths.get(path)))
    }
  }

  private def attached[A](rank: TestRank, attempt: Int = 0)(body: Pair => A): A = {
    val pair = Pair.attach("pair 0", rank.paths, attempt, timeout)
    try body(pair)
    finally pair.close()
  }

  /** One block each of elements `first` to `last` of a partition. */
  private def write(pair: Pair, epoch: Int, partition: Int, first: Int, last: Int): Unit = {
    val writer = new BlockWriter(pair, Datum.schema, Some(Datum.Data), 1)
    writer.startAt(epoch, partition, first)
    val cursor = new DatumCursor(
      (first to last).iterator.map(i => (s"$i", s"$partition", 1, 1, 1, false, Array(i.toByte))))
    while (cursor.next()) writer.append(cursor)
  }

  /** Epoch 0, which stays: partition 0 of two blocks, partition 1 of one. */
  private def firstEpoch(pair: Pair): Unit = {
    pair.beginResident(0)
    write(pair, 0, 0, 0, 1)
    write(pair, 0, 1, 0, 0)
    pair.publishEndOfEpoch(0)
  }

  private val firstEpochSeen = Seq("OK 0 0 0 0 1", "OK 1 0 0 1 1", "OK 2 0 1 0 1", "END_OF_EPOCH 0")

  private def replay(pair: Pair, epoch: Int, partition: Int): Unit =
    pair.resident.get.of(partition).foreach(pair.replay(_, epoch))

  test("a later epoch notifies the same blocks, in an order of its own") {
    withRank(blocks = 5) { rank =>
      attached(rank) { pair =>
        assert(pair.resident.isEmpty)
        firstEpoch(pair)
        assert(Seq.fill(4)(rank("next")) == firstEpochSeen)
        (0 to 2).foreach(number => assert(rank(s"release $number") == "OK"))
        replay(pair, 1, partition = 1)
        replay(pair, 1, partition = 0)
        pair.replay(pair.resident.get.endOfEpoch, 1)
        assert(Seq.fill(2)(rank("next")) == Seq("OK 4 1 1 0 1", "OK 5 1 0 0 1"))
        assert(rank("datum 0") == "OK 0 1 1 1 0 1 1 0",
          "label, shape, key and data of partition 0's first element")
        assert(Seq.fill(2)(rank("next")) == Seq("OK 6 1 0 1 1", "END_OF_EPOCH 1"))
        (4 to 6).foreach(number => assert(rank(s"release $number") == "OK"))
        pair.publishEndOfData()
        assert(rank("next") == "END_OF_DATA")
        pair.awaitAllReleased()
        assert(pair.publishedElements == 6)
      }
    }
  }

  test("a block may be held while it is notified again, and is out under both numbers") {
    withRank(blocks = 9) { rank =>
      attached(rank) { pair =>
        firstEpoch(pair)
        assert(Seq.fill(4)(rank("next")) == firstEpochSeen)
        // Nothing is released: only the credit bounds what is out.
        replay(pair, 1, partition = 0)
        replay(pair, 1, partition = 1)
        pair.replay(pair.resident.get.endOfEpoch, 1)
        replay(pair, 2, partition = 1)
        assert(Seq.fill(5)(rank("next")) == Seq("OK 4 1 0 0 1", "OK 5 1 0 1 1", "OK 6 1 1 0 1",
          "END_OF_EPOCH 1", "OK 8 2 1 0 1"))
        assert(rank("next").contains("block 0 is still held"))
        // In another order than they came.
        Seq(8, 2, 5, 1, 4, 6, 0).foreach(number => assert(rank(s"release $number") == "OK"))
        replay(pair, 2, partition = 0)
        assert(rank("next") == "OK 9 2 0 0 1")
      }
    }
  }

  test("the next attempt goes on in a later epoch by what the mapped file says alone") {
    withRank(blocks = 6) { rank =>
      attached(rank) { pair =>
        firstEpoch(pair)
        assert(Seq.fill(4)(rank("next")) == firstEpochSeen)
        (0 to 2).foreach(number => assert(rank(s"release $number") == "OK"))
        replay(pair, 1, partition = 1)
        pair.replay(pair.resident.get.of(0).head, 1)
      }
      attached(rank, attempt = 1) { pair =>
        assert(pair.position == Position(1, Some(0 -> 1L)) && pair.publishedElements == 5)
        assert(Seq.fill(2)(rank("next")) == Seq("OK 4 1 1 0 1", "OK 5 1 0 0 1"))
        (4 to 5).foreach(number => assert(rank(s"release $number") == "OK"))
        pair.replay(pair.resident.get.of(0)(1), 1)
        pair.replay(pair.resident.get.endOfEpoch, 1)
      }
      attached(rank, attempt = 2) { pair =>
        assert(pair.position == Position(2, None) && pair.publishedElements == 6)
        assert(Seq.fill(2)(rank("next")) == Seq("OK 6 1 0 1 1", "END_OF_EPOCH 1") && rank(
          "release 6") == "OK")
        pair.publishEndOfData()
      }
      attached(rank, attempt = 3) { pair =>
        assert(pair.position == Position.End)
        assert(rank("next") == "END_OF_DATA")
        pair.awaitAllReleased()
      }
    }
  }

  test("an attempt that dies in the epoch that is to stay leaves its blocks to the next one") {
    withRank(blocks = 5) { rank =>
      attached(rank) { pair =>
        pair.beginResident(0)
        write(pair, 0, 0, 0, 1)
      }
      attached(rank, attempt = 1) { pair =>
        pair.beginResident(0)
        write(pair, 0, 1, 0, 0)
        pair.publishEndOfEpoch(0)
        assert(Seq.fill(4)(rank("next")) == firstEpochSeen)
        assert(pair.resident.get.of(0).map(_.sequence) == Seq(0, 1) && pair.resident.get.of(1).map(
          _.sequence) == Seq(2))
      }
    }
  }

  test("the epoch that stays may begin anywhere in the ring: what came before it does not stay") {
    withRank(blocks = 5) { rank =>
      attached(rank) { pair =>
        write(pair, 0, 0, 1, 1)
        write(pair, 0, 1, 0, 0)
        pair.publishEndOfEpoch(0)
        assert(Seq.fill(3)(rank("next")) == Seq("OK 0 0 0 1 1", "OK 1 0 1 0 1", "END_OF_EPOCH 0"))
        (0 to 1).foreach(number => assert(rank(s"release $number") == "OK"))
        assert(pair.resident.isEmpty)
        pair.beginResident(1)
        write(pair, 1, 0, 0, 1)
        write(pair, 1, 1, 0, 0)
        pair.publishEndOfEpoch(1)
        assert(Seq.fill(4)(rank("next")) == Seq("OK 3 1 0 0 1", "OK 4 1 0 1 1", "OK 5 1 1 0 1",
          "END_OF_EPOCH 1"))
        (3 to 5).foreach(number => assert(rank(s"release $number") == "OK"))
        replay(pair, 2, partition = 1)
        assert(rank("next") == "OK 7 2 1 0 1" && rank("release 7") == "OK")
        pair.publishEndOfData()
        assert(rank("next") == "END_OF_DATA")
      }
    }
  }

  test("a ring that has no slot left for the ends takes no other block") {
    withRank(blocks = 4) { rank =>
      attached(rank) { pair =>
        pair.beginResident(0)
        write(pair, 0, 0, 0, 1)
        assertThrows[Pair.NoRoom.type](write(pair, 0, 1, 0, 0))
        assert(pair.ringBytes == 4 * 4096)
        assert(pair.ringBytesFor(3) == 5 * 4096)
      }
      // Nor does the next attempt.
      attached(rank, attempt = 1) { pair =>
        pair.beginResident(0)
        assertThrows[Pair.NoRoom.type](pair.claim())
        pair.publishEndOfEpoch(0)
        pair.publishEndOfData()
        assert(Seq.fill(4)(rank("next")) == Seq("OK 0 0 0 0 1", "OK 1 0 0 1 1", "END_OF_EPOCH 0",
          "END_OF_DATA"))
      }
    }
  }
}
