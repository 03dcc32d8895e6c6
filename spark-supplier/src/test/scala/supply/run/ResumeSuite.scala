package supply.run

import java.nio.file.Files
import java.util.concurrent.Future

import scala.util.Random

import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumSource
import supply.core.{ConfigException, RankEndedException}
import supply.lmdb.Datum
import supply.plan.{Shuffle, Uneven}
import supply.task.{SupplySettings, TaskReport}
import supply.testing.{Background, LocalSpark, TemporaryFolder, TestRank}

/**
 * Ranks that end in the middle and come back with a position. What they see is the same with
 * resident blocks, kept files, shuffled elements and equal steps.
 */
abstract class Resuming(resident: Boolean = false, kept: Boolean = false,
    shuffle: Shuffle = Shuffle.Partitions, uneven: Uneven = Uneven.Keep)
    extends AnyFunSuite with LocalSpark {
  import Background.{inBackground, result}
  import Resuming.tuple

  private val timeout = 20.0
  private val elements = 60
  private val partitions = 7
  private val epochs = 3

  /** Elements of an epoch: each partition has eight or nine, which is at least two whole blocks. */
  private val supplied = if (uneven == Uneven.Drop) 8 * partitions else elements

  private val staying = resident || kept

  /** Of the kept file: the first test writes it, and the others use it. */
  private lazy val folder = Files.createTempDirectory("supply-kept-")

  override protected def afterAll(): Unit =
    try if (kept) {
        assert(folder.toFile.list().map(_.replaceAll(".*\\.", "")).toSeq == Seq("kept"))
        TemporaryFolder.delete(folder)
      }
    finally super.afterAll()

  /** Large enough for all blocks of an epoch. */
  private val ringBytes = 32L * 4096

  private def start(
      rank: TestRank, waitForRank: Boolean, seed: Long = 5, stay: Boolean = staying)
      : Future[Seq[TaskReport]] = {
    val rdd = sc.parallelize(0 until elements, partitions).map(tuple)
    val files = TestRank.configFilesOf(rank)
    val settings = SupplySettings(
      ranks = 1,
      mappedFiles = files.mappedFiles,
      namedPipes = files.namedPipes,
      epochs = epochs,
      seed = seed,
      blockElements = Some(4),
      timeout = timeout,
      waitForRank = waitForRank,
      resident = stay && resident,
      residentFolder = if (stay && kept) Some(folder.toString) else None,
      keep = if (stay && kept) Some("elements") else None,
      shuffle = shuffle,
      uneven = uneven)
    inBackground(SupplyJob.run(sc, settings)(new DatumSource(rdd)))
  }

  /** Takes `n` Datums, or all; returns what it has seen, ends included. */
  private def take(rank: TestRank, n: Int = Int.MaxValue): Seq[String] =
    Resuming.take(rank, Resuming.Stop(n))

  private def withRank[A](position: Option[String] = None)(body: TestRank => A): A =
    TemporaryFolder { folder =>
      val rank = new TestRank(TestRank.configFiles(folder, 1).read().head)
      try {
        assert(rank.open(ringBytes, timeout = timeout, position = position) == "OK")
        body(rank)
      } finally rank.close()
    }

  /** What a rank that begins there sees of a run, and how many elements it has received. */
  private def seen(position: Option[String] = None, stay: Boolean = staying): (Seq[String], Long) =
    withRank(position) { rank =>
      val run = start(rank, waitForRank = false, stay = stay)
      val seen = take(rank)
      rank("close")
      (seen, result(run).map(_.elements).sum)
    }

  /** A whole run without a stop and without resident blocks. */
  private lazy val whole: Seq[String] = seen(stay = false)._1

  test("a run without a stop has every element once an epoch") {
    assert(whole.filter(_.startsWith("OK ")).groupBy(identity).forall(_._2.size == epochs))
    assert(whole.count(_.startsWith("OK ")) == epochs * supplied)
    assert(seen()._1 == whole)
  }

  test(
    "a rank that is killed and comes back at 100 random places sees the same as without a stop") {
    val random = new Random(1)
    TemporaryFolder { folder =>
      val paths = TestRank.configFiles(folder, 1).read().head
      var rank = new TestRank(paths)
      try {
        rank.open(ringBytes, timeout = timeout)
        val run = start(rank, waitForRank = true)
        val seen = Seq.newBuilder[String]
        // 100 ends in 180 elements, or fewer: a few elements between two of them, sometimes none.
        (0 until 100).foreach { _ =>
          seen ++= take(rank, random.nextInt(4))
          val position = rank.position()
          // What it gets after it has saved its position it gets again.
          take(rank, random.nextInt(6))
          rank.kill()
          rank = new TestRank(paths)
          assert(rank.open(ringBytes, timeout = timeout, position = Some(position)) == "OK")
        }
        seen ++= take(rank)
        rank("close")
        result(run)
        assert(withoutRepeatedEnds(seen.result()) == whole)
      } finally rank.close()
    }
  }

  /** An end that was seen right before a stop is not supplied again; one that was not seen is. */
  private def withoutRepeatedEnds(seen: Seq[String]): Seq[String] =
    seen.foldLeft(Vector.empty[String])((kept, next) =>
      if (next.startsWith("END_OF_EPOCH") && kept.lastOption.contains(next)) kept else kept :+ next)

  test(
    "a rank that wants to begin after the last epoch gets the end of the data, however far after") {
    Seq(epochs, Int.MaxValue).foreach(epoch =>
      assert(seen(Some(s"position-1:$epoch:0:0:0:0000000000000000")) == ((Seq("END_OF_DATA"), 0L))))
  }

  test("a new run accepts a position of the same plan, and refuses one of another plan") {
    val (before, position) = withRank() { rank =>
      val run = start(rank, waitForRank = false)
      val seen = take(rank, 70)
      val position = rank.position()
      rank("abort stopped by the test")
      assert(intercept[RankEndedException](result(run)).getMessage.contains("stopped by the test"))
      (seen, position)
    }
    assert(before ++ seen(Some(position))._1 == whole)
    withRank(Some(position)) { rank =>
      val run = start(rank, waitForRank = false, seed = 6)
      assert(take(rank).last.contains("--seed"))
      assertThrows[ConfigException](result(run))
    }
  }
}

class ResumeSuite extends Resuming

class ResidentResumeSuite extends Resuming(resident = true)

class KeptResumeSuite extends Resuming(kept = true)

class ShuffledResumeSuite extends Resuming(shuffle = Shuffle.Elements(buffer = 5))

class EvenResumeSuite extends Resuming(uneven = Uneven.Drop)

object Resuming {
  /** After how many elements, or ends of epochs, a rank stops. */
  final case class Stop(elements: Int = Int.MaxValue, ends: Int = Int.MaxValue)

  /** Takes Datums; returns what it has seen, ends included. */
  def take(rank: TestRank, stop: Stop): Seq[String] = {
    val seen = Seq.newBuilder[String]
    var left = stop
    while (left.elements > 0 && left.ends > 0) {
      val answer = rank("take")
      seen += answer
      if (answer.startsWith("OK ")) left = left.copy(elements = left.elements - 1)
      else if (answer.startsWith("END_OF_EPOCH")) left = left.copy(ends = left.ends - 1)
      else return seen.result()
    }
    seen.result()
  }

  def tuple(i: Int): Datum.Tuple = (f"$i%08d", i.toString, 1, 1, 8, false, Array.fill(8)(i.toByte))
}
