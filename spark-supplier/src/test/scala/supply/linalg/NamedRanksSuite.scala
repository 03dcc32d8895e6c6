package supply.linalg

import org.scalatest.funsuite.AnyFunSuite

import supply.testing.LocalSession

class NamedRanksSuite extends AnyFunSuite with LocalSession {
  test("ranks whose client has gone are forgotten when others come, and not earlier") {
    SilentRank(sc) { rank =>
      var (firstIsAlive, secondIsAlive) = (true, true)
      def add(id: String, clientIsAlive: => Boolean): Unit =
        NamedRanks.add(id, Array.empty, new Ranks(spark, rank.settings, "results"),
          () => clientIsAlive)
      add("first", firstIsAlive)
      add("second", secondIsAlive)
      firstIsAlive = false
      assert(NamedRanks.find("first").isDefined)
      add("third", false)
      assert(NamedRanks.find("first").isEmpty && NamedRanks.find("second").isDefined)
      secondIsAlive = false
    }
  }

  test("the end of a piece, also of the last one below 2 GiB") {
    val most = 64 << 20
    assert(NamedRanks.end(0, most, 10) == 10)
    assert(NamedRanks.end(0, most, Int.MaxValue) == most)
    assert(NamedRanks.end(31 * most, most, Int.MaxValue) == Int.MaxValue)
  }
}
