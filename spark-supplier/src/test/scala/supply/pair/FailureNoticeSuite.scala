package supply.pair

import org.scalatest.funsuite.AnyFunSuite

import supply.core.RankException
import supply.testing.TestRank

/** What the driver tells a rank, whether or not a task has its pair. */
class FailureNoticeSuite extends AnyFunSuite with PairWithRank {

  private def tell(rank: TestRank, text: String, run: Long = run): FailureNotice.Outcome =
    FailureNotice.send(rank.paths, run, text, timeout)(true)

  private val fireAtTheRank = "ERROR SUPPLY_ERROR_SPARK the source is on fire"

  test("a failure of Spark reaches a rank that no task has attached to") {
    withRank { rank =>
      assert(tell(rank, "too early") == FailureNotice.Absent)
      rank.open()
      assert(tell(rank, "the source is on fire") == FailureNotice.Told)
      assert(rank("next") == fireAtTheRank)
    }
  }

  test("a failure of Spark reaches a rank whose task has left") {
    withRank { rank =>
      rank.open()
      attach(rank).close()
      assert(tell(rank, "the source is on fire") == FailureNotice.Told)
      assert(rank("next") == fireAtTheRank)
    }
  }

  test(
    "a failure of Spark reaches a rank whose task still holds the pair, and goes on to hold it") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank)
      try {
        supply(pair, Seq(datum(0, 1)))
        assert(tell(rank, "the source is on fire") == FailureNotice.Told)
        assert(rank("next") == "OK 0 0 0 0 1" && rank("next") == fireAtTheRank)
        val message = intercept[RankException](attach(rank, attempt = 1, seconds = 0.2)).getMessage
        assert(message.contains("another attempt"))
      } finally pair.close()
      assert(tell(rank, "once more") == FailureNotice.Told)
    }
  }

  test(
    "a failure of another run does not reach the rank, while its task is attached or between two attempts") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank)
      try assert(tell(rank, "not yours", run = 78) == FailureNotice.NotWanted)
      finally pair.close()
      assert(tell(rank, "not yours", run = 78) == FailureNotice.NotWanted)
      val second = attach(rank, attempt = 1)
      try {
        supply(second, Seq(datum(0, 1)))
        assert(rank("next") == "OK 0 0 0 0 1")
      } finally second.close()
    }
  }

  test("a rank that opens when the driver does not want it to be told any more is not told") {
    withRank { rank =>
      rank.open()
      assert(FailureNotice.send(rank.paths, run, "too late", timeout)(
        false) == FailureNotice.NotWanted)
      val pair = attach(rank)
      try {
        supply(pair, Seq(datum(0, 1)))
        assert(rank("next") == "OK 0 0 0 0 1")
      } finally pair.close()
    }
  }

  test("a dead rank can not be told") {
    withRank { rank =>
      rank.open()
      attach(rank).close()
      rank.kill()
      assert(tell(rank, "anybody?") == FailureNotice.Absent)
    }
  }
}
