package supply.block

import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumCursor
import supply.core.ContractException
import supply.lmdb.Datum
import supply.pair.{Pair, PairWithRank}
import supply.protocol.{Layout, Position}
import supply.testing.{TestRank, TestStream}

/** Resident blocks, with a real rank: proto/PROTOCOL.md, "Resident epochs". */
class ResidentSuite extends AnyFunSuite with PairWithRank {

  private def withRing(blocks: Int)(body: TestRank => Unit): Unit = withRank { rank =>
    assert(rank.open(ringBytes = blocks * 4096L, timeout = timeout) == "OK")
    body(rank)
  }

  /** One block each of elements `first` to `last` of a partition. */
  private def write(pair: Pair, epoch: Int, partition: Int, first: Int, last: Int): Unit = {
    val writer = new BlockWriter(pair, Datum.schema, Some(Datum.Data), 1)
    writer.startAt(epoch, partition, first)
    val cursor = new DatumCursor(
      (first to last).iterator.map(i => (s"$i", s"$partition", 1, 1, 1, false, Array(i.toByte))))
    while (cursor.next()) writer.append(cursor)
  }

  /** Epoch 0, which becomes resident: partition 0 of two blocks, partition 1 of one. */
  private def firstEpoch(pair: Pair): Unit = {
    pair.beginResident(0)
    write(pair, 0, 0, 0, 1)
    write(pair, 0, 1, 0, 0)
    pair.publishEndOfEpoch(0)
  }

  private val firstEpochSeen = Seq("OK 0 0 0 0 1", "OK 1 0 0 1 1", "OK 2 0 1 0 1", "END_OF_EPOCH 0")

  /** A task has made epoch 0 resident, and the rank has received and released it. */
  private def afterFirstEpoch(rank: TestRank)(body: Pair => Unit): Unit = attached(rank) { pair =>
    assert(pair.resident.isEmpty)
    firstEpoch(pair)
    assert(Seq.fill(4)(rank("next")) == firstEpochSeen)
    (0 to 2).foreach(number => assert(rank(s"release $number") == "OK"))
    body(pair)
  }

  private def replay(pair: Pair, epoch: Int, partition: Int): Unit =
    pair.resident.get.of(partition).foreach(pair.replay(_, epoch))

  test("a later epoch replays the same blocks, in its own order") {
    withRing(blocks = 5) { rank =>
      afterFirstEpoch(rank) { pair =>
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

  test("a block may be held while it is replayed, and is held under both numbers") {
    withRing(blocks = 9) { rank =>
      attached(rank) { pair =>
        firstEpoch(pair)
        assert(Seq.fill(4)(rank("next")) == firstEpochSeen)
        // Nothing is released: only the credit limits the number of blocks.
        replay(pair, 1, partition = 0)
        replay(pair, 1, partition = 1)
        pair.replay(pair.resident.get.endOfEpoch, 1)
        replay(pair, 2, partition = 1)
        assert(Seq.fill(5)(rank("next")) == Seq("OK 4 1 0 0 1", "OK 5 1 0 1 1", "OK 6 1 1 0 1",
          "END_OF_EPOCH 1", "OK 8 2 1 0 1"))
        assert(rank("next").contains("block 0 is still held"))
        // Not in the order in which they came.
        Seq(8, 2, 5, 1, 4, 6, 0).foreach(number => assert(rank(s"release $number") == "OK"))
        replay(pair, 2, partition = 0)
        assert(rank("next") == "OK 9 2 0 0 1")
      }
    }
  }

  test("the next attempt resumes in a later epoch, from the mapped file alone") {
    withRing(blocks = 6) { rank =>
      afterFirstEpoch(rank) { pair =>
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

  test("a record that replays a block which is not an earlier one is refused") {
    withRing(blocks = 6) { rank =>
      afterFirstEpoch(rank)(replay(_, 1, partition = 1))
      Seq(-4L, 4L).foreach { wrong =>
        TestStream.slot(rank, 4)(_.putLong(Layout.BlockHeader.replayBlock, wrong))
        assert(intercept[ContractException](attach(rank, attempt = 1)).getMessage.contains(
            s"block 4 is recorded as a replay of block $wrong"))
      }
    }
  }

  test("a block that is recorded outside the ring is refused") {
    withRing(blocks = 6) { rank =>
      afterFirstEpoch(rank)(_ => ())
      Seq(0L, -4096L, Layout.Constant.RING_OFFSET + 6 * 4096L).foreach { wrong =>
        TestStream.slot(rank, 2)(
          _.putLong(Layout.BlockHeader.notification + Layout.Notification.offset, wrong))
        assert(intercept[ContractException](attach(rank, attempt = 1)).getMessage.contains(
            s"block 2 is recorded at offset $wrong, which is in no slot"))
      }
    }
  }

  test("if an attempt dies in the resident epoch, the next one keeps its blocks") {
    withRing(blocks = 5) { rank =>
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

  test("the resident epoch may begin anywhere in the ring, after blocks that are not resident") {
    withRing(blocks = 5) { rank =>
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

  test("a ring with slots left only for the ends takes no other block") {
    withRing(blocks = 4) { rank =>
      attached(rank) { pair =>
        pair.beginResident(0)
        write(pair, 0, 0, 0, 1)
        assertThrows[Pair.NoRoom.type](write(pair, 0, 1, 0, 0))
        assert(pair.ringBytes == 4 * 4096)
        assert(pair.ringBytesFor(3) == 5 * 4096)
      }
      // The next attempt refuses it, too.
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
