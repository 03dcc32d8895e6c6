package supply.linalg

import org.scalatest.funsuite.AnyFunSuite

import supply.core.RankException
import supply.testing.LocalSession

/** Commands to a rank of this node that never answers. */
class RankCommandsSuite extends AnyFunSuite with LocalSession {
  test("an interrupt ends a command") {
    SilentRank(sc) { rank =>
      Thread.currentThread().interrupt()
      intercept[InterruptedException](rank.send())
    }
  }

  test("ranks that a program could not tell that it leaves are gone for it, too") {
    Seq[Ranks => Unit](_.detach(), _.close()).foreach { leave =>
      SilentRank(sc) { rank =>
        val ranks = new Ranks(spark, rank.settings, "results")
        Thread.currentThread().interrupt()
        intercept[InterruptedException](leave(ranks))
        assert(ranks.areGone)
        leave(ranks)
      }
    }
  }

  test("another thread cancels a command") {
    SilentRank(sc) { rank =>
      assert(intercept[RankException](rank.sendAndCancel()).getMessage.contains("was cancelled"))
    }
  }

  test("a call that is cancelled between two of its commands sends no other one") {
    SilentRank(sc) { rank =>
      rank.commands.cancel()
      intercept[RankException](rank.send(continues = true))
      // The next call is another one.
      intercept[RankException](rank.sendAndCancel())
    }
  }
}
