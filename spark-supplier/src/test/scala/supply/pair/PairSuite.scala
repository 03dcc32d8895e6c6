package supply.pair

import java.nio.file.{Files, Paths}
import java.util.concurrent.atomic.AtomicInteger

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

import supply.block.BlockWriter
import supply.core.{ConfigException, ContractException, ElementTooLargeException, PairHeldException, RankEndedException, RankException, SupplyException}
import supply.protocol.{Column, EpochCounts, Layout, Position, Schema}
import supply.protocol.Layout.{Constant, MappedFileHeader => At}
import supply.testing.{Background, LockingProcess, TestStream}

/** The task's side of a pair against a real rank. */
class PairSuite extends AnyFunSuite with PairWithRank {
  import Background.{inBackground, result}

  test("elements of any size up to nearly a block arrive, through a ring of two blocks") {
    withRank { rank =>
      rank.open()
      val sizes = (0 to 40) ++ Seq(63, 64, 65, 1000, 3000, 0, 3200) ++ Seq.fill(30)(500)
      val supplied = inBackground {
        attached(rank) { pair =>
          supply(pair, sizes.zipWithIndex.map { case (bytes, i) => datum(i, bytes) })
          pair.publishEndOfData()
          pair.awaitAllReleased()
          pair.markEndSeen()
        }
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
    withPair() { (_, pair) =>
      val message = intercept[ElementTooLargeException](supply(pair,
          Seq(datum(0, 10), datum(1, 4096)))).getMessage
      assert(message.contains("'key-1' (4096 bytes of data)") && message.contains(
        "4096 bytes") && message.contains("(partition 0)") && message.contains(
        "of which column 'data' has 41") && message.contains(
        "block=8192 ring=16384 ("))
    }
  }

  test("the largest element that fits fits, and one byte more does not") {
    withPair() { (_, pair) =>
      def fits(bytes: Int) =
        try { supply(pair, Seq(datum(0, bytes))); true }
        catch { case _: ElementTooLargeException => false }
      // The header, seven columns, and the aligned buffers of all columns except the data.
      val overhead = Layout.aligned(
        Layout.BlockHeader.SIZE + 7 * Layout.BlockColumn.SIZE) + 8 * Constant.BUFFER_ALIGNMENT
      val largest = 4096 - overhead
      assert(!fits(largest + 1))
      assert(fits(largest))
    }
  }

  test("too many columns for a block: the message names the setting") {
    withPair() { (_, pair) =>
      val schema = Schema((0 until 200).map(i => Column(s"column_$i", "i")))
      val message = intercept[ConfigException](new BlockWriter(pair, schema, None, 1)).getMessage
      assert(message.contains(
        "200 columns need blocks of more than 6528 bytes: set a larger block= (and ring=), at least " +
          "block=65536 ring=131072 (") && message.contains(
        "mapped-files.conf:1"))
    }
  }

  test("an attempt finds the columns of an earlier one, also many of them and names of any text") {
    val schema =
      Schema((Seq("", "two\nlines", "n" * 60000) ++ (0 until 5000).map(i => s"column_$i")).map(
          Column(_, "i")).toIndexedSeq)
    withPair() { (rank, pair) =>
      pair.writeOrCheckSchema(schema)
      pair.close()
      attached(rank, attempt = 1) { again =>
        again.writeOrCheckSchema(schema)
        val other = Schema(schema.columns.init :+ Column("other", "i"))
        assert(intercept[ContractException](again.writeOrCheckSchema(other)).getMessage.contains(
            "an earlier attempt has announced other columns"))
      }
    }
  }

  test("the task waits for credit, and continues when the rank releases") {
    withPair() { (rank, pair) =>
      supply(pair, Seq.tabulate(2)(datum(_, 1)), blockElements = 1)
      val third = inBackground(supply(pair, Seq(datum(2, 1)), from = 2))
      assert(rank("next") == "OK 0 0 0 0 1" && rank("next") == "OK 1 0 0 1 1")
      // Releasing only the second gives no space: releases are cumulative.
      assert(rank("release 1") == "OK" && !third.isDone)
      assert(rank("release 0") == "OK")
      result(third)
      assert(rank("next") == "OK 2 0 0 2 1")
    }
  }

  test("if no rank opens the pair, the message names its file and config line") {
    withRank { rank =>
      val message = intercept[RankException](attach(rank, seconds = 0.2)).getMessage
      assert(message.contains(rank.paths.mappedFile) && message.contains(
        "mapped-files.conf:1") && message.contains("--rank-timeout"))
    }
  }

  test("the files of a dead rank are not mistaken for a rank") {
    withRank { rank =>
      rank.open()
      rank.kill()
      assert(intercept[RankException](attach(rank, seconds = 0.2)).getMessage.contains(
          "their rank is dead"))
    }
  }

  test("if a rank dies while the task waits for credit, the task fails at once") {
    withPair() { (rank, pair) =>
      val supplying = inBackground(supply(pair, Seq.tabulate(3)(datum(_, 1)), blockElements = 1))
      rank("next")
      rank.kill()
      assert(intercept[RankEndedException](result(supplying)).getMessage.contains(
          s"process ${rank.pid}"))
    }
  }

  test("a stalled rank is an error after the timeout") {
    withPair(seconds = 0.3) { (_, pair) =>
      val message = intercept[RankException](supply(pair, Seq.tabulate(3)(datum(_, 1)),
          blockElements = 1)).getMessage
      assert(message.contains("released no block") && message.contains("--rank-timeout"))
      assert(pair.waitedNanos >= 0.3e9)
    }
  }

  test(
    "at the deadline, a release in the header counts, and the pair is still usable") {
    withPair(seconds = 2) { (rank, pair) =>
      val third = inBackground(supply(pair, Seq.tabulate(3)(datum(_, 1)), blockElements = 1))
      Seq("OK 0 0 0 0 1", "OK 1 0 0 1 1").foreach(block => assert(rank("next") == block))
      TestStream.await(readsPipe)
      TestStream.header(rank)(_.putLong(At.released, 1))
      result(third)
      val fourth = inBackground(supply(pair, Seq(datum(3, 1)), from = 3))
      Seq("release 0", "release 1").foreach(release => assert(rank(release) == "OK"))
      result(fourth)
      assert(rank("next") == "OK 2 0 0 2 1" && rank("next") == "OK 3 0 0 3 1")
    }
  }

  /** Whether a thread is blocked in the read of a request pipe. */
  private def readsPipe: Boolean = Thread.getAllStackTraces.values.asScala.exists { frames =>
    frames.exists(_.getClassName.endsWith("RequestPipe")) &&
    frames.headOption.exists(_.getClassName.endsWith("FileDispatcherImpl"))
  }

  test(
    "a rank that has released a batch and asks for nothing more is an error with a text of its own") {
    withPair(seconds = 0.3) { (rank, pair) =>
      supply(pair, Seq(datum(0, 1)))
      pair.publishEndOfEpoch(0)
      rank("next")
      assert(rank("release 0") == "OK" && rank("next") == "END_OF_EPOCH 0")
      assert(intercept[RankException](pair.awaitAcknowledged()).getMessage.contains(
          "lives, but has not asked for what follows the batch for 0 s"))
    }
  }

  test("a rank that fails says why") {
    withPair() { (rank, pair) =>
      val supplying = inBackground(supply(pair, Seq.tabulate(3)(datum(_, 1)), blockElements = 1))
      rank("next")
      assert(rank("abort the loss is not a number") == "OK")
      assert(intercept[RankEndedException](result(supplying)).getMessage.contains(
          "the loss is not a number"))
    }
  }

  test("an attempt with another plan does not resume after published blocks") {
    withRank { rank =>
      rank.open()
      attached(rank) { first =>
        first.bindPlan(5)
        supply(first, Seq(datum(0, 1)))
      }
      attached(rank, attempt = 1) { second =>
        second.bindPlan(5)
        assert(intercept[ConfigException](second.bindPlan(6)).getMessage.contains(
            "another run has begun to supply this rank"))
      }
    }
  }

  test("counts of a run that has published nothing are replaced, and later ones stay") {
    withRank { rank =>
      rank.open()
      attached(rank)(_.announceCounts(EpochCounts(elements = 30, steps = 10)))
      assert(rank("counts") == "OK 30 10")
      attached(rank, attempt = 1) { second =>
        second.forgetCounts()
        assert(rank("counts") == "AGAIN")
        supply(second, Seq(datum(0, 1)))
        second.announceCounts(EpochCounts(elements = 40))
      }
      attached(rank, attempt = 2)(_.forgetCounts())
      assert(rank("counts") == "OK 40 0")
    }
  }

  test("the next attempt notifies unreleased blocks again, and resumes after them") {
    withRank { rank =>
      rank.open(ringBytes = 4 * 4096)
      attached(rank) { first =>
        supply(first, Seq.tabulate(4)(datum(_, 1)), blockElements = 1)
        assert(rank("next") == "OK 0 0 0 0 1" && rank("release 0") == "OK" && rank(
          "next") == "OK 1 0 0 1 1")
      }
      attached(rank, attempt = 1) { second =>
        assert(second.position == Position(0, Some(0 -> 4L)))
        supply(second, Seq(datum(4, 1)), from = 4)
        assert(Seq.fill(3)(rank("next")) == Seq("OK 2 0 0 2 1", "OK 3 0 0 3 1", "OK 4 0 0 4 1"))
      }
    }
  }

  test("a second attempt cannot write while the first still holds the pair") {
    withRank { rank =>
      rank.open()
      val first = attach(rank)
      try assert(intercept[PairHeldException](attach(rank, attempt = 1,
              seconds = 0.2)).getMessage.contains("another attempt"))
      finally first.close()
      attach(rank, attempt = 1).close()
    }
  }

  test("a pair that another run holds is refused with the numbers of both, and their process") {
    withRank { rank =>
      rank.open()
      def refused(run: Long, seconds: Double = timeout) =
        intercept[PairHeldException](Pair.attach(Vector("pair 0" -> rank.paths), 0, seconds, run))
      val self = ProcessHandle.current().pid()
      val says =
        f"another run (number ${run}%016x, process $self%d) supplies its rank, and this one (number "
      attached(rank)(_ => assert(refused(78).getMessage.contains(says + "000000000000004e)")))
      // In another process.
      Using.resource(new LockingProcess(Paths.get(rank.paths.mappedFile),
          Constant.TASK_LOCK_BYTE)) { holder =>
        assert(holder.hasLock)
        assert(refused(78).getMessage.contains(says) && !refused(78).isTimeout)
        val own = refused(run, seconds = 0.2)
        assert(own.getMessage.contains("another attempt") && own.isTimeout)
      }
      Pair.attach(Vector("pair 0" -> rank.paths), 0, timeout, 78).close()
    }
  }

  test("a task that waits for a rank ends its wait when none is expected any more") {
    withRank { rank =>
      val asked = new AtomicInteger
      intercept[RankException](Pair.attach(Vector("pair 0" -> rank.paths), 0, 1e6,
          isExpected = () => asked.incrementAndGet() < 3))
      assert(asked.get == 3)
    }
  }

  test(
    "if a rank stalls with a full notification pipe, every attempt fails after the timeout") {
    withRank { rank =>
      rank.open(ringBytes = 3000L * 4096)
      def isStuck(body: => Unit): Unit = {
        val message = intercept[RankException](body).getMessage
        assert(message.contains(
          s"process ${rank.pid}) lives, but read no notification") && message.contains(
          "is it stuck") &&
          message.contains("--rank-timeout"))
      }
      val pair = attach(rank, seconds = 0.3)
      try isStuck { supply(pair, Seq.tabulate(3000)(datum(_, 1)), blockElements = 1); () }
      finally pair.close()
      isStuck { attach(rank, attempt = 1, seconds = 0.3).close() }
      TestStream.header(rank)(_.putInt(At.version, 2 << 16))
      assert(intercept[ContractException](attach(rank, attempt = 2,
            seconds = 0.3)).getMessage.contains("2.0"))
    }
  }

  test("credit for unpublished blocks is refused, and credit that is taken back") {
    withPair(ringBytes = 4 * 4096) { (rank, pair) =>
      def release(number: Long): Unit =
        TestStream.header(rank) { header => header.putLong(At.released, number); () }
      supply(pair, Seq.tabulate(2)(datum(_, 1)), blockElements = 1)
      release(2)
      supply(pair, Seq.tabulate(4)(datum(_, 1)), blockElements = 1)
      release(1)
      assert(intercept[ContractException](pair.claim()).getMessage.contains("released is 1"))
    }
    Seq(3L, -1L).foreach { wrong =>
      withPair() { (rank, pair) =>
        supply(pair, Seq.tabulate(2)(datum(_, 1)), blockElements = 1)
        TestStream.header(rank)(_.putLong(At.released, wrong))
        assert(intercept[ContractException](pair.claim()).getMessage.contains(
            s"released is $wrong"))
      }
    }
  }

  test(
    "if an attempt dies before the rank has everything, the next one waits for the rank") {
    withRank { rank =>
      rank.open()
      attached(rank) { first =>
        supply(first, Seq(datum(0, 1)))
        first.publishEndOfData()
        assert(rank.drain() == Seq("OK 0 0 0 0 1", "END_OF_DATA"))
      }
      rank.send("close")
      Thread.sleep(100) // time enough for removing the pair
      attached(rank, attempt = 1) { second =>
        assert(second.position == Position.End)
        second.awaitAllReleased()
        assert(second.isAtEnd)
        second.markEndSeen()
        assert(rank.answer() == "OK" && !Files.exists(Paths.get(rank.paths.mappedFile)))
      }
    }
  }

  test("an interrupted task stops waiting") {
    withPair() { (rank, pair) =>
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
    }
  }

  test("another version of the contract is refused on both sides, with both versions") {
    withRank { rank =>
      rank.open()
      TestStream.header(rank)(_.putInt(At.version, Layout.version - 1))
      val message = intercept[ContractException](attach(rank)).getMessage
      assert(message.contains("1.5") && message.contains(Layout.versionText(Layout.version)))
      val answer = rank("next")
      assert(answer.startsWith("ERROR SUPPLY_ERROR_SPARK") && answer.contains(
        "1.5") && answer.contains(Layout.versionText(Layout.version)))
    }
  }

  test("a file that is not a pipe is named") {
    withRank { rank =>
      rank.open()
      Files.delete(Paths.get(rank.paths.requestPipe))
      Files.writeString(Paths.get(rank.paths.requestPipe), "")
      assert(intercept[SupplyException](attach(rank)).getMessage.contains(
          s"${rank.paths.requestPipe} is not a named pipe"))
    }
  }
}
