package supply.pair

import java.nio.file.{Files, Paths}
import java.nio.file.attribute.PosixFilePermissions

import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, PairHeldException}
import supply.testing.{Background, TestRank}

/** Notifies a rank of a failure, whether or not a task has its pair. */
class FailureSenderSuite extends AnyFunSuite with PairWithRank {

  private def notifyRank(rank: TestRank, text: String, run: Long = run): FailureSender.Outcome =
    send(rank, text, run)(Some(true))

  private def send(rank: TestRank, text: String, run: Long = run)(
      isWanted: => Option[Boolean]): FailureSender.Outcome =
    FailureSender.send(Seq(rank.paths), run, text, timeout)(isWanted).head

  private val fireAtTheRank = "ERROR SUPPLY_ERROR_SPARK the source is on fire"

  test("a failure of Spark reaches a rank that no task has attached to") {
    withRank { rank =>
      assert(notifyRank(rank, "too early") == FailureSender.Absent)
      rank.open()
      assert(notifyRank(rank, "the source is on fire") == FailureSender.Sent)
      assert(rank("next") == fireAtTheRank)
    }
  }

  test("a failure reaches files of this user that others can change, but follows no link") {
    withRank { rank =>
      rank.open()
      val (mapped, pipe) =
        (Paths.get(rank.paths.mappedFile), Paths.get(rank.paths.notificationPipe))
      Seq(mapped, pipe).foreach(Files.setPosixFilePermissions(_,
          PosixFilePermissions.fromString("rw-rw-rw-")))
      Files.setPosixFilePermissions(mapped.getParent,
        PosixFilePermissions.fromString("rwxrwxrwx"))
      intercept[ConfigException](attach(rank))
      assert(notifyRank(rank, "the source is on fire") == FailureSender.Sent)
      assert(rank("next") == fireAtTheRank)
      val elsewhere = Files.move(mapped, mapped.resolveSibling("elsewhere"))
      Files.createSymbolicLink(mapped, elsewhere)
      assert(notifyRank(rank, "too far").isInstanceOf[FailureSender.Refused])
      Files.delete(elsewhere)
    }
  }

  test("a failure of Spark reaches a rank whose task has left") {
    withRank { rank =>
      rank.open()
      attach(rank).close()
      assert(notifyRank(rank, "the source is on fire") == FailureSender.Sent)
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
        assert(notifyRank(rank, "the source is on fire") == FailureSender.Sent)
        assert(rank("next") == "OK 0 0 0 0 1" && rank("next") == fireAtTheRank)
        val message =
          intercept[PairHeldException](attach(rank, attempt = 1, seconds = 0.2)).getMessage
        assert(message.contains("another attempt"))
      } finally pair.close()
      assert(notifyRank(rank, "once more") == FailureSender.Sent)
    }
  }

  test(
    "a failure of another run does not reach the rank, while its task is attached or between two attempts") {
    withRank { rank =>
      rank.open()
      val pair = attach(rank)
      try assert(notifyRank(rank, "not yours", run = 78) == FailureSender.Unwanted)
      finally pair.close()
      assert(notifyRank(rank, "not yours", run = 78) == FailureSender.Unwanted)
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
        Some(true)
      }
      assert(sent == FailureSender.Sent && rank("next") == fireAtTheRank)
    }
  }

  test("the driver is asked once for all pairs, and not at all without a rank") {
    withRank { rank =>
      var asked = 0
      def sendTwice() = FailureSender.send(Seq(rank.paths, rank.paths), run, "on fire", timeout) {
        asked += 1
        Some(true)
      }
      assert(sendTwice() == Seq(FailureSender.Absent, FailureSender.Absent) && asked == 0)
      rank.open()
      assert(sendTwice() == Seq(FailureSender.Sent, FailureSender.Sent) && asked == 1)
    }
  }

  test("a rank that opens its pair after the driver has answered is not notified by that answer") {
    withRank { rank =>
      rank.open()
      val next = new TestRank(rank.paths)
      try {
        val sent = send(rank, "not yours") {
          rank.kill()
          assert(next.open() == "OK")
          Some(true)
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

  test("a rank that opens when the driver no longer waits for ranks is not notified") {
    withRank { rank =>
      rank.open()
      assert(send(rank, "too late")(Some(false)) == FailureSender.Unwanted)
      val pair = attach(rank)
      try {
        supply(pair, Seq(datum(0, 1)))
        assert(rank("next") == "OK 0 0 0 0 1")
      } finally pair.close()
    }
  }

  test("a rank of which the driver has said nothing in time is tried again") {
    withRank { rank =>
      rank.open()
      assert(send(rank, "too early")(None) == FailureSender.Busy)
      assert(notifyRank(rank, "the source is on fire") == FailureSender.Sent)
      assert(rank("next") == fireAtTheRank)
    }
  }

  test("a living rank whose pipe cannot be opened is tried again") {
    withRank { rank =>
      rank.open()
      val pipe = Paths.get(rank.paths.notificationPipe)
      val aside = Files.move(pipe, pipe.resolveSibling("aside"))
      assert(notifyRank(rank, "too early") == FailureSender.Busy)
      Files.move(aside, pipe)
      assert(notifyRank(rank, "the source is on fire") == FailureSender.Sent)
    }
  }

  test("a dead rank cannot be notified") {
    withRank { rank =>
      rank.open()
      attach(rank).close()
      rank.kill()
      assert(notifyRank(rank, "anybody?") == FailureSender.Absent)
    }
  }
}
