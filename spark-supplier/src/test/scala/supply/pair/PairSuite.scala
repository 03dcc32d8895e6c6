package supply.pair

import java.nio.file.{Files, Path, Paths}

import scala.jdk.CollectionConverters._

import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, ContractException, ElementTooLargeException, PairHeldException, RankEndedException, RankException, SupplyException}
import supply.protocol.Layout.{Constant, MappedFileHeader => At}
import supply.protocol.{Column, Layout, Position, Schema}
import supply.testing.{Background, TestStream}

/** The task's side of a pair against a real rank. */
class PairSuite extends AnyFunSuite with PairWithRank {
  import Background.{inBackground, result}

  test("elements of any size up to nearly a block arrive, through a ring of two blocks") {
    withRank { rank =>
      rank.open()
      val sizes = (0 to 40) ++ Seq(63, 64, 65, 1000, 3000, 0, 3200) ++ Seq.fill(30)(500)
      val supplied = inBackground {
        val pair = attach(rank)
        try {
          supply(pair, sizes.zipWithIndex.map { case (bytes, i) => datum(i, bytes) })
          pair.publishEndOfData()
          pair.awaitAllReleased()
          pair.markEndSeen()
        } finally pair.close()
      }
      var seen = 0
      var next = rank("next")
      while (next.startsWith("OK ")) {
        val Seq(_, sequence, _, _, first, count) = next.split(' ').toSeq: @unchecked
        assert(first.toInt == seen)
        (0 until count.toInt).foreach { i =>
          val bytes = sizes(seen)
          val key = s"key-$seen".length
          assert(
            rank(s"datum $i") == s"OK $seen 1 1 $bytes ${if (seen % 2 == 0) 1 else 0} $key $bytes $bytes")
          seen += 1
        }
        rank(s"release $sequence")
        next = rank("next")
      }
      assert(next == "END_OF_DATA" && seen == sizes.size)
      result(supplied)
    }
  }

  test("an element larger than a block names the element, the block and the setting") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank)
      try {
        val message = intercept[ElementTooLargeException](supply(pair,
            Seq(datum(0, 10), datum(1, 4096)))).getMessage
        assert(message.contains("'key-1' (4096 bytes of data)") && message.contains(
          "4096 bytes") && message.contains("block="))
      } finally pair.close()
    }
  }

  test("the largest element that fits fits, and one byte more does not") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank)
      try {
        def fits(bytes: Int) =
          try { supply(pair, Seq(datum(0, bytes))); true }
          catch { case _: ElementTooLargeException => false }
        // Header and seven columns, then the aligned buffers of all columns but the data.
        val overhead = Layout.aligned(
          Layout.BlockHeader.SIZE + 7 * Layout.BlockColumn.SIZE) + 8 * Constant.BUFFER_ALIGNMENT
        val largest = 4096 - overhead
        assert(!fits(largest + 1))
        assert(fits(largest))
      } finally pair.close()
    }
  }

  test("columns that a block has no room for: the message has the setting") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank)
      try {
        val schema = Schema((0 until 200).map(i => Column(s"column_$i", "i")))
        val message = intercept[ConfigException](new BlockWriter(pair, schema, None, 1)).getMessage
        assert(message.contains(
          "200 columns need blocks of more than 6528 bytes: set a larger block=") && message.contains(
          "mapped-files.conf:1"))
      } finally pair.close()
    }
  }

  test("the task waits for credit, and goes on when the rank releases") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank)
      try {
        supply(pair, Seq.tabulate(2)(datum(_, 1)), blockElements = 1)
        val third = inBackground(supply(pair, Seq(datum(2, 1)), from = 2))
        assert(rank("next") == "OK 0 0 0 0 1" && rank("next") == "OK 1 0 0 1 1")
        // Releasing the second alone gives no space: releases are cumulative.
        assert(rank("release 1") == "OK" && !third.isDone)
        assert(rank("release 0") == "OK")
        result(third)
        assert(rank("next") == "OK 2 0 0 2 1")
      } finally pair.close()
    }
  }

  test("a rank that does not come is named with its file and config line") {
    withRank { rank =>
      val message = intercept[RankException](attach(rank, seconds = 0.2)).getMessage
      assert(message.contains(rank.paths.mappedFile) && message.contains(
        "mapped-files.conf:1") && message.contains("--timeout"))
    }
  }

  test("the files of a dead rank are not taken for a rank") {
    withRank { rank =>
      rank.open()
      rank.kill()
      assert(intercept[RankException](attach(rank, seconds = 0.2)).getMessage.contains(
          "their rank is dead"))
    }
  }

  test("a rank that dies while the task waits for credit is noticed at once") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank)
      try {
        val supplying = inBackground(supply(pair, Seq.tabulate(3)(datum(_, 1)), blockElements = 1))
        rank("next")
        rank.kill()
        assert(intercept[RankEndedException](result(supplying)).getMessage.contains(
            s"process ${rank.pid}"))
      } finally pair.close()
    }
  }

  test("a rank that stalls is an error after the limit, which the message names") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank, seconds = 0.3)
      try {
        val message = intercept[RankException](supply(pair, Seq.tabulate(3)(datum(_, 1)),
            blockElements = 1)).getMessage
        assert(message.contains("released no block") && message.contains("--timeout"))
        assert(pair.waitedNanos >= 0.3e9)
      } finally pair.close()
    }
  }

  test(
    "a release that no request has announced by the deadline counts, and the pair is still usable") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank, seconds = 2)
      try {
        val third = inBackground(supply(pair, Seq.tabulate(3)(datum(_, 1)), blockElements = 1))
        Seq("OK 0 0 0 0 1", "OK 1 0 0 1 1").foreach(block => assert(rank("next") == block))
        TestStream.await(readsPipe)
        patch(Paths.get(rank.paths.mappedFile), At.released, Array[Byte](1, 0, 0, 0, 0, 0, 0, 0))
        result(third)
        val fourth = inBackground(supply(pair, Seq(datum(3, 1)), from = 3))
        Seq("release 0", "release 1").foreach(release => assert(rank(release) == "OK"))
        result(fourth)
        assert(rank("next") == "OK 2 0 0 2 1" && rank("next") == "OK 3 0 0 3 1")
      } finally pair.close()
    }
  }

  /** Whether a thread is in the system call that reads the request pipe. */
  private def readsPipe: Boolean = Thread.getAllStackTraces.values.asScala.exists { frames =>
    frames.exists(_.getClassName.endsWith("RequestPipe")) &&
    frames.headOption.exists(_.getClassName.endsWith("FileDispatcherImpl"))
  }

  test(
    "a rank that has released a batch, and asks for no more, is an error after the limit in other words") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank, seconds = 0.3)
      try {
        supply(pair, Seq(datum(0, 1)))
        pair.publishEndOfEpoch(0)
        rank("next")
        assert(rank("release 0") == "OK" && rank("next") == "END_OF_EPOCH 0")
        assert(intercept[RankException](pair.awaitAcknowledged()).getMessage.contains(
            "lives, but has not asked for what follows the batch for 0 s"))
      } finally pair.close()
    }
  }

  test("a rank that gives up tells why") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank)
      try {
        val supplying = inBackground(supply(pair, Seq.tabulate(3)(datum(_, 1)), blockElements = 1))
        rank("next")
        assert(rank("abort the loss is not a number") == "OK")
        assert(intercept[RankEndedException](result(supplying)).getMessage.contains(
            "the loss is not a number"))
      } finally pair.close()
    }
  }

  test("an attempt of another plan does not go on behind what is published") {
    withRank { rank =>
      rank.open()
      val first = attach(rank)
      try {
        first.bindPlan(5)
        supply(first, Seq(datum(0, 1)))
      } finally first.close()
      val second = attach(rank, attempt = 1)
      try {
        second.bindPlan(5)
        assert(intercept[ConfigException](second.bindPlan(6)).getMessage.contains(
            "another run has begun to supply this rank"))
      } finally second.close()
    }
  }

  test("the next attempt notifies again what is not released, and goes on behind it") {
    withRank { rank =>
      rank.open(ringBytes = 4 * 4096)
      val first = attach(rank)
      try {
        supply(first, Seq.tabulate(4)(datum(_, 1)), blockElements = 1)
        assert(rank("next") == "OK 0 0 0 0 1" && rank("release 0") == "OK" && rank(
          "next") == "OK 1 0 0 1 1")
      } finally first.close()
      val second = attach(rank, attempt = 1)
      try {
        assert(second.position == Position(0, Some(0 -> 4L)))
        supply(second, Seq(datum(4, 1)), from = 4)
        assert(Seq.fill(3)(rank("next")) == Seq("OK 2 0 0 2 1", "OK 3 0 0 3 1", "OK 4 0 0 4 1"))
      } finally second.close()
    }
  }

  test("a second attempt can not write while the first still holds the pair") {
    withRank { rank =>
      rank.open()
      val first = attach(rank)
      try assert(intercept[PairHeldException](attach(rank, attempt = 1,
              seconds = 0.2)).getMessage.contains("another attempt"))
      finally first.close()
      attach(rank, attempt = 1).close()
    }
  }

  test(
    "a rank that stalls with a full notification pipe is an error after the limit, for every attempt") {
    withRank { rank =>
      rank.open(ringBytes = 3000L * 4096)
      def isStuck(body: => Unit): Unit = {
        val message = intercept[RankException](body).getMessage
        assert(message.contains(
          s"process ${rank.pid}) lives, but read no notification") && message.contains(
          "is it stuck") &&
          message.contains("--timeout"))
      }
      val pair = attach(rank, seconds = 0.3)
      try isStuck { supply(pair, Seq.tabulate(3000)(datum(_, 1)), blockElements = 1); () }
      finally pair.close()
      isStuck { attach(rank, attempt = 1, seconds = 0.3).close() }
      patch(Paths.get(rank.paths.mappedFile), At.version, Array[Byte](0, 0, 2, 0))
      assert(intercept[ContractException](attach(rank, attempt = 2,
            seconds = 0.3)).getMessage.contains("2.0"))
    }
  }

  test("credit for what is not published is refused, wherever it is read") {
    Seq(3L, -1L).foreach { wrong =>
      withRank { rank =>
        rank.open()
        val pair = attach(rank)
        try {
          supply(pair, Seq.tabulate(2)(datum(_, 1)), blockElements = 1)
          val bytes = java.nio.ByteBuffer.allocate(8).order(
            java.nio.ByteOrder.LITTLE_ENDIAN).putLong(wrong).array()
          patch(Paths.get(rank.paths.mappedFile), At.released, bytes)
          assert(intercept[ContractException](pair.claim()).getMessage.contains(
              s"released is $wrong"))
        } finally pair.close()
      }
    }
  }

  test(
    "an attempt that dies before it knows that the rank has everything leaves it to the next one") {
    withRank { rank =>
      rank.open()
      val first = attach(rank)
      try {
        supply(first, Seq(datum(0, 1)))
        first.publishEndOfData()
        assert(rank.drain() == Seq("OK 0 0 0 0 1", "END_OF_DATA"))
      } finally first.close()
      rank.send("close")
      Thread.sleep(100) // time enough for removing the pair
      val second = attach(rank, attempt = 1)
      try {
        assert(second.position == Position.End)
        second.awaitAllReleased()
        assert(second.isAtEnd)
        second.markEndSeen()
        assert(rank.answer() == "OK" && !Files.exists(Paths.get(rank.paths.mappedFile)))
      } finally second.close()
    }
  }

  test("an interrupted task stops waiting") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank)
      try {
        var failure: Throwable = null
        val thread = new Thread(() =>
          try { supply(pair, Seq.tabulate(3)(datum(_, 1)), blockElements = 1); () }
          catch { case e: Throwable => failure = e })
        thread.start()
        rank("next")
        thread.interrupt()
        thread.join(20000)
        assert(
          !thread.isAlive && failure.isInstanceOf[java.nio.channels.ClosedByInterruptException])
      } finally pair.close()
    }
  }

  test("another major version of the contract is refused on both sides, with both versions") {
    withRank { rank =>
      rank.open()
      patch(Paths.get(rank.paths.mappedFile), At.version, Array[Byte](0, 0, 2, 0))
      val message = intercept[ContractException](attach(rank)).getMessage
      assert(message.contains("2.0") && message.contains("1.0"))
      val answer = rank("next")
      assert(answer.startsWith("ERROR SUPPLY_ERROR_SPARK") && answer.contains(
        "2.0") && answer.contains("1.0"))
    }
  }

  test("a pipe that is no pipe is named") {
    withRank { rank =>
      rank.open()
      Files.delete(Paths.get(rank.paths.requestPipe))
      Files.writeString(Paths.get(rank.paths.requestPipe), "")
      assert(intercept[SupplyException](attach(rank)).getMessage.contains(
          s"${rank.paths.requestPipe} is not a named pipe"))
    }
  }

  private def patch(path: Path, offset: Long, bytes: Array[Byte]): Unit = {
    val file = new java.io.RandomAccessFile(path.toFile, "rw")
    try {
      file.seek(offset)
      file.write(bytes)
    } finally file.close()
  }
}
