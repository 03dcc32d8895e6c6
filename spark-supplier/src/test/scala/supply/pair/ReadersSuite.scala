package supply.pair

import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, RankEndedException, RankException}
import supply.protocol.Position
import supply.testing.{Background, TemporaryFolder, TestRank}

/** A task that supplies several real ranks over one ring. */
class ReadersSuite extends AnyFunSuite with PairWithRank {
  import Background.{inBackground, result}

  /** Ranks that have not opened their pairs, each a reader of the first one's ring. */
  private def withReaders(count: Int)(body: IndexedSeq[TestRank] => Unit): Unit = TemporaryFolder {
    folder =>
      val ranks = TestRank.configFiles(folder, count).read().map(new TestRank(_))
      try {
        ranks.zipWithIndex.foreach { case (rank, i) =>
          rank.reader(i, count, ranks.head.paths.mappedFile)
        }
        body(ranks)
      } finally ranks.foreach(_.kill())
  }

  private def withOpened(count: Int)(body: IndexedSeq[TestRank] => Unit): Unit =
    withReaders(count) { ranks =>
      ranks.foreach(rank => assert(rank.open() == "OK"))
      body(ranks)
    }

  private def attachAll(ranks: Seq[TestRank], attempt: Int, seconds: Double): Pair =
    Pair.attach(ranks.zipWithIndex.map { case (rank, i) => s"pair of rank $i" -> rank.paths }
        .toIndexedSeq, attempt, seconds, run)

  private def together[A](ranks: Seq[TestRank], attempt: Int = 0, seconds: Double = timeout)(
      body: Pair => A): A = Using.resource(attachAll(ranks, attempt, seconds))(body)

  private def finish(pair: Pair): Unit = {
    pair.publishEndOfData()
    pair.awaitAllReleased()
    pair.markEndSeen()
  }

  test("each reader gets every block, once and in order, through a ring of two slots") {
    withOpened(3) { ranks =>
      val taking = ranks.map(rank => inBackground(rank.drain()))
      together(ranks) { pair =>
        supply(pair, (0 until 40).map(datum(_, 100)), blockElements = 3)
        finish(pair)
      }
      val seen = taking.map(result(_))
      assert(seen.distinct.size == 1 && seen.head.count(_.startsWith("OK ")) == 14)
      assert(seen.head.last == "END_OF_DATA")
    }
  }

  test("the slowest reader is the credit") {
    withOpened(2) { ranks =>
      together(ranks) { pair =>
        supply(pair, Seq(datum(0, 10), datum(1, 10)), blockElements = 1)
        assert(ranks.map(_("next")).forall(_.startsWith("OK 0 ")))
        assert(ranks.map(_("datum 0")).forall(_.startsWith("OK 0 ")))
        assert(ranks(0)("release 0") == "OK")
        val third = inBackground(supply(pair, Seq(datum(2, 10)), from = 2))
        assert(ranks(0)("next").startsWith("OK 1 "))
        Thread.sleep(100)
        assert(pair.files.forall(_.published == 2))
        assert(ranks(1)("datum 0").startsWith("OK 0 "))
        assert(ranks(1)("release 0") == "OK")
        result(third)
        assert(pair.files.forall(_.published == 3))
      }
    }
  }

  test(
    "the next attempt goes on for each reader, also if the last one stored a number for some only") {
    withOpened(3) { ranks =>
      together(ranks) { pair =>
        supply(pair, Seq(datum(0, 10), datum(1, 10)), blockElements = 1)
        assert(ranks(1)("next").startsWith("OK 0 ") && ranks(1)("release 0") == "OK")
        // As if it had died before it told the last reader.
        pair.files(2).published = 1
      }
      val taking = together(ranks, attempt = 1) { pair =>
        assert(pair.files.forall(_.published == 2))
        val taking = ranks.map(rank => inBackground(rank.drain()))
        supply(pair, (2 until 6).map(datum(_, 10)), from = 2, blockElements = 1)
        finish(pair)
        taking
      }
      val seen = taking.map(result(_).map(_.split(' ').take(2).mkString(" ")))
      val all = (0 until 6).map(i => s"OK $i") :+ "END_OF_DATA"
      assert(seen == Seq(all, all.tail, all))
    }
  }

  test("the death of one reader ends the wait for another one at once, and is named") {
    withOpened(3) { ranks =>
      together(ranks, seconds = 600) { pair =>
        supply(pair, Seq(datum(0, 10), datum(1, 10)), blockElements = 1)
        val waiting = inBackground(intercept[RankEndedException](supply(pair, Seq(datum(2, 10)))))
        ranks(1).kill()
        assert(result(waiting).getMessage.matches(
            "(?s)pair of rank 1 .*ended before it had taken all its data.*"))
      }
    }
  }

  test("a reader that stops ends the wait for another one, with its text") {
    withOpened(2) { ranks =>
      together(ranks, seconds = 600) { pair =>
        supply(pair, Seq(datum(0, 10), datum(1, 10)), blockElements = 1)
        val waiting = inBackground(intercept[RankEndedException](supply(pair, Seq(datum(2, 10)))))
        assert(ranks(1)("abort no more") == "OK")
        assert(result(waiting).getMessage.matches("(?s)pair of rank 1 .*no more.*"))
      }
    }
  }

  test("a reader that has everything may exit while another one still reads") {
    withOpened(2) { ranks =>
      together(ranks) { pair =>
        supply(pair, Seq(datum(0, 10)))
        pair.publishEndOfData()
        val ended = inBackground(pair.awaitAllReleased())
        assert(ranks(1).drain().last == "END_OF_DATA")
        ranks(1).kill()
        Thread.sleep(1500) // longer than the task takes to look for the others
        assert(ranks(0).drain().last == "END_OF_DATA")
        result(ended)
      }
    }
  }

  test("both sides must know the same share") {
    withOpened(3) { ranks =>
      for (part <- Seq(ranks.take(1), ranks.take(2), ranks.tail, Seq(ranks(1)))) {
        val text = intercept[ConfigException](attachAll(part, 0, timeout)).getMessage
        assert(text.contains("of 3 of one ring") && text.contains("SUPPLY_SHARE"))
      }
      together(ranks)(pair => assert(pair.isUntouched))
    }
    withReaders(2) { ranks =>
      ranks.foreach { rank =>
        rank.reader(0, 0, "none")
        assert(rank.open() == "OK")
      }
      val text = intercept[ConfigException](attachAll(ranks, 0, timeout)).getMessage
      assert(text.contains("the only reader of its ring"))
    }
  }

  test("a reader of a dead rank's ring is not supplied from the new one") {
    withOpened(2) { ranks =>
      ranks(0).kill()
      Using.resource(new TestRank(ranks(0).paths)) { again =>
        again.reader(0, 2, ranks(0).paths.mappedFile)
        assert(again.open() == "OK")
        val text = intercept[RankException](attachAll(Seq(again, ranks(1)), 0, 0.1)).getMessage
        assert(text.contains("pair of rank 1") && text.contains("the ring of a dead rank"))
        again.kill()
      }
    }
  }

  test("a rank cannot join a ring that is supplied") {
    withOpened(2) { ranks =>
      together(ranks)(supply(_, Seq(datum(0, 10))))
      ranks(1).kill()
      Using.resource(new TestRank(ranks(1).paths)) { again =>
        again.reader(1, 2, ranks(0).paths.mappedFile)
        assert(again.open(timeout = 0.1).contains("supplied already"))
      }
    }
  }

  test("readers that want to begin at different places are refused") {
    withReaders(2) { ranks =>
      val there = Position(0, Some(1 -> 7L))
      assert(ranks(0).open() == "OK")
      assert(ranks(1).open(position = Some(s"position-1:0:1:1:7:${"0" * 15}5")) == "OK")
      val text = intercept[ConfigException](attachAll(ranks, 0, timeout)).getMessage
      assert(text.contains("pair of rank 1") && text.contains("begin at one position"), there)
    }
  }
}
