package supply.pair

import java.net.InetAddress
import java.nio.file.{Files, Path}
import java.util.concurrent.atomic.AtomicInteger

import org.scalatest.funsuite.AnyFunSuite

import supply.core.{ConfigException, ContractException, Deadline, PairHeldException, RankEndedException, SupplyException}
import supply.protocol.{Column, Schema}
import supply.protocol.Layout.{Constant, MappedFileHeader => At}
import supply.run.ServedWrite
import supply.testing.{LinkRank, TemporaryFolder}
import supply.testing.Background.{inBackground, result}

/** A task's end of a link, step by step, and ranks that break the contract. */
class LinkSuite extends AnyFunSuite with PairWithRank {
  import LinkSuite._

  private val loopback = InetAddress.getLoopbackAddress
  private lazy val server = LinkServer(isTls = false, loopback, 0 to 0)
  private def place = (loopback.getHostAddress, server.port, false)

  private def withLink(folder: Path = Path.of("/nonexistent"), reconnectSeconds: Double = 60,
      kept: String => Unit = _ => (), blocks: Int = 4, blockBytes: Int = 4096)(
      body: (Link, LinkRank) => Unit): Unit = {
    val run = s"run-${number.incrementAndGet()}"
    val paths = PairPaths(folder.resolve("rank-0.mapped").toString, "", "", "served")
    val link = server.register(Link.Of(run, "", 0), ServedWrite.keyOf("k"), paths,
      reconnectSeconds)(kept).get
    val rank = new LinkRank(s"supply://${loopback.getHostAddress}:1/$run", "k", 0,
      blocks = blocks, blockBytes = blockBytes)
    try body(link, rank)
    finally {
      link.close()
      rank.close()
    }
  }

  private def accepted(rank: LinkRank): Unit =
    assert(rank.open(place).get.kind == Constant.LINK_ACCEPTED)

  private def pairOf(link: Link): Pair =
    new Deadline(60).find(5)(Pair.over(link, PairPaths("/nonexistent/mapped", "", "", "served"), 0,
        timeout, run)).get

  /** A task that has published a block, which the rank has. */
  private def withBlock(body: (Link, LinkRank, Pair) => Unit): Unit = withLink() { (link, rank) =>
    accepted(rank)
    val pair = pairOf(link)
    supply(pair, Seq(datum(0, 10)))
    while (rank.received.isEmpty) assert(rank.take(rank.next()))
    body(link, rank, pair)
  }

  /** What the task fails with. */
  private def failure(link: Link): SupplyException = intercept[SupplyException](
    new Deadline(60).poll(5) { link.file; false })

  test(
    "a frame that is longer than its kind allows ends the task, and nothing is allocated for it") {
    val most = Map(Constant.LINK_CREDIT -> 0, Constant.LINK_STOP -> 1024,
      Constant.LINK_RESULT -> 64, Constant.LINK_RESULT_BYTES -> (1 << 20),
      Constant.LINK_RESULT_SEAL -> 0, Constant.LINK_RESULT_ABORT -> 1024, 0 -> -1, 99 -> -1)
    for ((kind, bytes) <- most; wrong <- Seq(bytes + 1, Int.MaxValue, -1))
      withLink() { (link, rank) =>
        accepted(rank)
        rank.send(kind, length = Some(wrong))
        val found = failure(link)
        assert(found.isInstanceOf[ContractException] &&
          found.getMessage.contains(
            s"a request of kind $kind has ${Integer.toUnsignedString(wrong)} bytes"))
      }
  }

  test("a rank that opens wrongly is refused, or not heard") {
    withLink() { (_, rank) =>
      rank.send(place, Constant.LINK_CREDIT, Array.empty[Byte])
      assert(rank.isEnded)
      rank.send(place, Constant.LINK_OPEN, new Array[Byte](100))
      assert(rank.isEnded)
    }
    def refusal(change: LinkRank => Unit): String = {
      var text = ""
      withLink() { (link, rank) =>
        change(rank)
        val notice = rank.open(place).get
        assert(notice.kind == Constant.LINK_REFUSED)
        text = notice.text
        assert(failure(link).getMessage == text)
      }
      text
    }
    assert(refusal(_.header.putLong(At.magic, 0)).contains("its magic is wrong"))
    assert(refusal(_.header.putInt(At.version, 0x10000)).contains("speaks contract 1.0"))
    assert(refusal(_.header.putInt(At.readers, 2)).contains("do not share a ring"))
    assert(refusal { rank =>
      rank.header.putInt(At.blockCount, 1 << 20)
      rank.header.putLong(At.fileBytes, Constant.RING_OFFSET + (4096L << 20) + 4096)
    }.contains("at most 4 GiB"))
    assert(refusal(_.header.putInt(At.blockCount, 1)).contains("block_count is 1"))
    assert(refusal(_.header.putLong(At.fileBytes, 5)).contains("file_bytes is 5"))
    assert(refusal(_.header.putLong(At.published, -1)).contains("published"))
    assert(refusal(_.header.putLong(At.published, 1)).contains("the slot of block 0 holds"))
  }

  test("credit above what is published, a second LINK_OPEN and a bad name end the task") {
    for (wrong <- Seq(2L, -1L)) withBlock { (link, rank, _) =>
      rank.released = wrong
      rank.send(Constant.LINK_CREDIT)
      assert(failure(link).getMessage.contains(
          s"its released is ${java.lang.Long.toUnsignedString(wrong)}, with 1 blocks published"))
    }
    withBlock { (link, rank, _) =>
      rank.acknowledged = 7
      rank.send(Constant.LINK_CREDIT)
      assert(failure(link).getMessage.contains("its acknowledged is 7"))
    }
    withBlock { (link, rank, _) =>
      rank.send(Constant.LINK_OPEN)
      assert(failure(link).getMessage.contains("twice"))
    }
    withBlock { (link, rank, _) =>
      rank.send(Constant.LINK_RESULT, "../r".getBytes)
      assert(failure(link).getMessage.contains("is no name of a result"))
    }
  }

  test("credit never shrinks, and wakes the task") {
    withBlock { (_, rank, pair) =>
      val waiting = inBackground(pair.awaitAllReleased())
      rank.release()
      result(waiting)
      rank.released = 0
      rank.send(Constant.LINK_CREDIT)
      rank.send(Constant.LINK_STOP, "no more".getBytes)
      val claiming = inBackground((1 to 9).foreach(i => supply(pair, Seq(datum(i, 10)), from = i)))
      assert(intercept[RankEndedException](result(claiming)).getMessage.contains("no more"))
      assert(pair.file.released == 1)
    }
  }

  test("a second connection of the rank replaces the first, and gets what it has not had") {
    withBlock { (_, rank, pair) =>
      rank.kill()
      supply(pair, Seq(datum(1, 10)), from = 1)
      accepted(rank)
      while (rank.received.size < 2) assert(rank.take(rank.next()))
      // The task does not know yet that this one is lost.
      accepted(rank)
      supply(pair, Seq(datum(2, 10)), from = 2)
      while (rank.received.size < 3) assert(rank.take(rank.next()))
      rank.release()
      pair.awaitAllReleased()
    }
  }

  test("a rank of another generation is refused while there is one, and must wait after it") {
    withBlock { (link, rank, _) =>
      val generation = rank.header.getLong(At.generation)
      val other = new LinkRank(rank.hub, "k", 0)
      val refused = other.open(place).get
      assert(refused.kind == Constant.LINK_REFUSED && refused.text.contains("(process 4711)"))
      rank.kill()
      assert(new Deadline(60).poll(5)(other.open(place).get.kind == Constant.LINK_BUSY))
      other.close()
      assert(link.file.get.generation == generation)
    }
  }

  test("a task whose rank has more than it has sent gives way") {
    withBlock { (link, rank, _) =>
      rank.header.putLong(At.published, 2)
      assert(rank.open(place).get.kind == Constant.LINK_BUSY)
      assert(failure(link).isInstanceOf[PairHeldException])
    }
  }

  test("a new task continues after the last block of the rank, with a wide schema") {
    val wide = Schema((0 until 400).map(i => Column(s"column $i", "l")))
    withLink() { (link, rank) =>
      accepted(rank)
      val pair = pairOf(link)
      pair.writeOrCheckSchema(wide)
      while (rank.schema == null) assert(rank.take(rank.next()))
      assert(rank.schema.sameElements(wide.toBytes.array))
      pair.publishEndOfEpoch(0)
      while (rank.received.isEmpty) assert(rank.take(rank.next()))
      pair.close()
      while (rank.take(rank.next())) {}
      val next = server.register(link.of, ServedWrite.keyOf("k"),
        PairPaths("/nonexistent/mapped", "",
          "", "served"), 60)(_ => ()).get
      accepted(rank)
      val second = pairOf(next)
      assert(second.position.epoch == 1)
      second.writeOrCheckSchema(wide)
      second.publishEndOfData()
      while (!rank.hasAll) assert(rank.take(rank.next()))
      rank.release()
      second.awaitAllReleased()
      second.markEndSeen()
      second.close()
      while (rank.take(rank.next())) {}
      assert(rank.isEndSeen)
    }
  }

  test("a rank that comes again sends much before it reads what it has missed") {
    TemporaryFolder { folder =>
      withLink(folder.resolve("results"), blocks = 32, blockBytes = 1 << 20) { (link, rank) =>
        accepted(rank)
        val pair = pairOf(link)
        rank.kill()
        supply(pair, (0 until 30).map(datum(_, 1000000)), blockElements = 1)
        accepted(rank)
        // Both are more than a connection holds.
        assert(rank.result("r", new Array[Byte](30 << 20)) == "")
        while (rank.received.size < 30) assert(rank.take(rank.next()))
      }
    }
  }

  test("a result that cannot be kept is answered with the reason") {
    withLink(folder = Path.of("/proc/1/nowhere")) { (_, rank) =>
      accepted(rank)
      assert(rank.result("r", new Array[Byte](5000)).startsWith("Spark's executor cannot keep it"))
      assert(rank.answer(Constant.LINK_RESULT_SEAL) == "no result has begun")
    }
    TemporaryFolder { folder =>
      withLink(folder.resolve("results"), kept = _ => throw new ConfigException("no driver")) {
        (_, rank) =>
          accepted(rank)
          assert(rank.result("r", new Array[Byte](5000)).contains("no driver"))
          val file = folder.resolve("results/rank-0.mapped.r.result")
          assert(Files.getPosixFilePermissions(file).size == 2)
      }
    }
  }
}

private object LinkSuite {
  private val number = new AtomicInteger
}
