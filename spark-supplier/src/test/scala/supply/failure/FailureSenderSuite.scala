package supply.failure

import org.scalatest.funsuite.AnyFunSuite

import supply.core.RankException
import supply.pair.PairWithRank
import supply.testing.{Background, TestRank}

/** Telling a rank of a failure, whether or not a task has its pair. */
class FailureSenderSuite extends AnyFunSuite with PairWithRank {

  private def tell(rank: TestRank, text: String, run: Long = run): FailureSender.Outcome =
    send(rank, text, run)(true)

  private def send(rank: TestRank, text: String, run: Long = run)(
      isWanted: => Boolean): FailureSender.Outcome =
    FailureSender.send(Seq(rank.paths), run, text, timeout)(isWanted).head

  private val fireAtTheRank = "ERROR SUPPLY_ERROR_SPARK the source is on fire"

  test("a failure of Spark reaches a rank that no task has attached to") {
    withRank { rank =>
      assert(tell(rank, "too early") == FailureSender.Absent)
      rank.open()
      assert(tell(rank, "the source is on fire") == FailureSender.Sent)
      assert(rank("next") == fireAtTheRank)
    }
  }

  test("a failure of Spark reaches a rank whose task has left") {
    withRank { rank =>
      rank.open()
      attach(rank).close()
      assert(tell(rank, "the source is on fire") == FailureSender.Sent)
      assert(rank("next") == fireAtTheRank)
    }
  }

  test(
    "a failure of Spark reaches a rank whose task holds the pair, and the task keeps holding it") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank)
      try {
        supply(pair, Seq(datum(0, 1)))
        assert(tell(rank, "the source is on fire") == FailureSender.Sent)
        assert(rank("next") == "OK 0 0 0 0 1" && rank("next") == fireAtTheRank)
        val message = intercept[RankException](attach(rank, attempt = 1, seconds = 0.2)).getMessage
        assert(message.contains("another attempt"))
      } finally pair.close()
      assert(tell(rank, "once more") == FailureSender.Sent)
    }
  }

  test(
    "a failure of another run does not reach the rank, while its task is attached or between two attempts") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank)
      try assert(tell(rank, "not yours", run = 78) == FailureSender.Unwanted)
      finally pair.close()
      assert(tell(rank, "not yours", run = 78) == FailureSender.Unwanted)
      val second = attach(rank, attempt = 1)
      try {
        supply(second, Seq(datum(0, 1)))
        assert(rank("next") == "OK 0 0 0 0 1")
      } finally second.close()
    }
  }

  test("no pair is locked while the driver is asked") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank)
      val sent = send(rank, "the source is on fire") {
        Background.result(Background.inBackground(pair.close()))
        true
      }
      assert(sent == FailureSender.Sent && rank("next") == fireAtTheRank)
    }
  }

  test("the driver is asked once for all pairs, and not at all without a rank") {
    withRank { rank =>
      var asked = 0
      def tellTwice() = FailureSender.send(Seq(rank.paths, rank.paths), run, "on fire", timeout) {
        asked += 1
        true
      }
      assert(tellTwice() == Seq(FailureSender.Absent, FailureSender.Absent) && asked == 0)
      rank.open()
      assert(tellTwice() == Seq(FailureSender.Sent, FailureSender.Sent) && asked == 1)
    }
  }

  test("a rank that opens its pair after the driver has answered is not told by that answer") {
    withRank { rank =>
      rank.open()
      val next = new TestRank(rank.paths)
      try {
        val sent = send(rank, "not yours") {
          rank.kill()
          assert(next.open() == "OK")
          true
        }
        assert(sent == FailureSender.Busy)
        val pair = attach(next)
        try {
          supply(pair, Seq(datum(0, 1)))
          assert(next("next") == "OK 0 0 0 0 1")
        } finally pair.close()
      } finally next.kill()
    }
  }

  test("a rank that opens when the driver no longer waits for ranks is not told") {
    withRank { rank =>
      rank.open()
      assert(send(rank, "too late")(false) == FailureSender.Unwanted)
      val pair = attach(rank)
      try {
        supply(pair, Seq(datum(0, 1)))
        assert(rank("next") == "OK 0 0 0 0 1")
      } finally pair.close()
    }
  }

  test("a dead rank cannot be told") {
    withRank { rank =>
      rank.open()
      attach(rank).close()
      rank.kill()
      assert(tell(rank, "anybody?") == FailureSender.Absent)
    }
  }
}
