package supply.run

import java.nio.file.Path
import java.util.concurrent.Future
import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions.col
import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumSource
import supply.core.SupplyException
import supply.lmdb.{Datum, LmdbRDD, LmdbSource, TestLmdb}
import supply.plan.{Shuffle, Uneven}
import supply.rows.{Shapes, RowSource}
import supply.source.Source
import supply.task.SupplySettings
import supply.testing.{Background, LocalSession, TemporaryFolder, TestRank}

/** Ranks that stop, and other numbers of ranks that continue with --resume-positions. */
class OtherRanksSuite extends AnyFunSuite with LocalSession {
  import Background.{inBackground, result}
  import OtherRanksSuite._
  import Resuming.{Stop, take}

  // A task that fails is tried again.
  override protected def master: String = "local[5,4]"

  private val usual = SupplySettings(ranks = 4, mappedFiles = "", namedPipes = "", epochs = 3,
    seed = 5, blockElements = Some(4), timeout = Timeout)

  /** Datums whose labels are the numbers from 0. */
  private def rows: Source = rows(spark.range(0, Elements.toLong, 1, Partitions).toDF())

  private def rows(numbers: DataFrame): Source = RowSource.of(
    numbers.selectExpr("encode(string(id), 'UTF-8') key", "int(id) label", "1 channels", "1 height",
      "1 width", "false encoded", "encode('x', 'UTF-8') data"),
    new Shapes)

  private def withLmdb(body: (=> Source) => Unit): Unit = TemporaryFolder { folder =>
    val path = TestLmdb.write(folder.resolve("lmdb"),
      (0 until Elements).map(i =>
        TestLmdb.key(i) -> TestLmdb.datum(1).toBuilder.setLabel(i).build().toByteArray))
    body(new LmdbSource(LmdbRDD.open(sc, path.toString, Partitions), inPlace = false))
  }

  /** Runs ranks that each stop somewhere, or take everything; some bring a position. */
  private def withRun[A](settings: SupplySettings, stops: Int => Stop,
      positions: Int => Option[String])(
      source: => Source)(
      end: (Seq[TestRank], Seq[Seq[String]], Future[_]) => A): A =
    TemporaryFolder { folder =>
      val ranks = open(folder, settings.ranks, positions)
      try {
        val files = TestRank.configFiles(folder, settings.ranks)
        val job = inBackground(SupplyJob.run(sc,
            settings.copy(mappedFiles = files.mappedFiles, namedPipes = files.namedPipes))(source))
        val seen = ranks.zipWithIndex.map { case (rank, i) => inBackground(take(rank, stops(i))) }
          .map(result(_))
        end(ranks, seen, job)
      } finally ranks.foreach(_.close())
    }

  /** (epoch, label) of all elements of such a run, and the position of each rank. */
  private def run(settings: SupplySettings, stops: Int => Stop = _ => Stop(),
      positions: Int => Option[String] = _ => None)(
      source: => Source): (Seq[(Int, Int)], Seq[String]) =
    withRun(settings, stops, positions)(source) { (ranks, seen, job) =>
      seen.foreach(answers => assert(!answers.exists(_.startsWith("ERROR"))))
      val saved = ranks.map(_.position())
      val isWhole = seen.forall(_.lastOption.contains("END_OF_DATA"))
      ranks.foreach(_(if (isWhole) "close" else "abort stopped by the test"))
      try result(job)
      catch {
        case e: SupplyException if !isWhole && e.getMessage.contains("stopped by the test") =>
      }
      (seen.flatMap(labels), saved)
    }

  private def open(folder: Path, ranks: Int, positions: Int => Option[String]): Seq[TestRank] = {
    // Spark starts before ranks wait for it.
    assert(!sc.isStopped)
    TestRank.configFiles(folder, ranks).read().map(new TestRank(_)).zipWithIndex.map {
      case (rank, i) =>
        assert(rank.open(32 * 4096, rank = i, timeout = Timeout, position = positions(i)) == "OK")
        rank
    }
  }

  private def assertWhole(seen: Seq[(Int, Int)]): Unit = {
    val expected = for (epoch <- 0 until usual.epochs; label <- 0 until Elements)
      yield epoch -> label
    assert(seen.sorted == expected)
  }

  private def assertContinues(settings: SupplySettings)(source: => Source): Unit = {
    val (before, saved) = run(settings, InEpoch1)(source)
    assert(before.map(_._1).toSet == Set(0, 1))
    Seq(2, 3, 5).foreach { ranks =>
      val (after, _) =
        run(settings.copy(ranks = ranks, resumePositions = Some(saved.mkString(","))))(source)
      assertWhole(before ++ after)
    }
  }

  test("four ranks stop in an epoch of a DataFrame; two, three and five continue") {
    assertContinues(usual)(rows)
  }

  test("four ranks stop in an epoch of an LMDB; two, three and five continue") {
    withLmdb(source => assertContinues(usual)(source))
  }

  test("the same with shuffled elements, and with blocks that are resident after the rest") {
    withLmdb(source => assertContinues(usual.copy(shuffle = Shuffle.Elements(5)))(source))
    assertContinues(usual.copy(resident = true))(rows)
  }

  test("a run that continues stops and continues, with any number of ranks") {
    val (first, saved) = run(usual, Seq(3, 2, 9, 0).map(Stop(_)))(rows)
    val resumed = usual.copy(ranks = 3, resumePositions = Some(saved.mkString(",")))
    Seq(4, 25).foreach { count =>
      val (second, savedAgain) = run(resumed, _ => Stop(count))(rows)
      val other = resumed.copy(ranks = 5,
        resumePositions = resumed.resumePositions.map(_ + "/" + savedAgain.mkString(",")))
      val (third, _) = run(other)(rows)
      assertWhole(first ++ second ++ third)
      // As many ranks may also bring their own positions.
      val (same, _) = run(resumed, positions = savedAgain.lift)(rows)
      assertWhole(first ++ second ++ same)
    }
  }

  test("a task that fails in the rest of an epoch is tried again, and nothing is lost") {
    OtherRanksSuite.fails.set(false)
    val source = new DatumSource(sc.parallelize(0 until Elements, Partitions).map(failingOnce))
    val (before, saved) = run(usual, Seq(7, 3, 0, 1).map(Stop(_)))(source)
    OtherRanksSuite.fails.set(true)
    val (after, _) =
      run(usual.copy(ranks = 2, resumePositions = Some(saved.mkString(","))))(source)
    assert(!OtherRanksSuite.fails.get)
    assertWhole(before ++ after)
  }

  test("a rank that is killed in the rest of an epoch comes back and gets what follows") {
    val (before, saved) = run(usual, Seq(7, 3, 0, 1).map(Stop(_)))(rows)
    TemporaryFolder { folder =>
      val ranks = open(folder, 2, _ => None)
      val (killed, other) = (ranks.head, ranks.last)
      val files = TestRank.configFiles(folder, 2)
      val job = inBackground(SupplyJob.run(sc,
          usual.copy(ranks = 2, mappedFiles = files.mappedFiles, namedPipes = files.namedPipes,
            waitForRank = true, resumePositions = Some(saved.mkString(","))))(rows))
      val first = take(killed, Stop(5))
      val position = killed.position()
      killed.kill()
      val again = new TestRank(killed.paths)
      try {
        assert(again.open(32 * 4096, rank = 0, timeout = Timeout,
          position = Some(position)) == "OK")
        val seen = Seq(again, other).map(rank => inBackground(take(rank, Stop()))).map(result(_))
        Seq(again, other).foreach(_("close"))
        result(job)
        assertWhole(before ++ (first +: seen).flatMap(labels))
      } finally Seq(again, other).foreach(_.close())
    }
  }

  test("with equal steps no element comes twice, and each rank gets as many") {
    val even = usual.copy(uneven = Uneven.Drop, blockElements = Some(2))
    val (before, saved) = run(even, Seq(4, 2, 6, 4).map(Stop(_)))(rows)
    val (after, _) = run(even.copy(ranks = 3, resumePositions = Some(saved.mkString(","))))(rows)
    val rest = (before ++ after).filter(_._1 == 0)
    assert(rest.distinct == rest)
    assert(after.count(_._1 == 0) % (3 * 2) == 0 && after.exists(_._1 == 0))
    assert(after.count(_._1 == 1) == after.count(_._1 == 2))
  }

  /** The error of the run, which rank 0 gets. */
  private def refused(settings: SupplySettings, positions: Int => Option[String] = _ => None)(
      source: => Source): String =
    withRun(settings, _ => Stop(), positions)(source) { (_, seen, job) =>
      val message = intercept[SupplyException](result(job)).getMessage
      assert(seen.head.last.contains(message))
      message
    }

  test("what does not belong to the run that stopped is refused, and every rank is notified") {
    val (_, saved) = run(usual, InEpoch1)(rows)
    def message(resumed: Seq[String], settings: SupplySettings = usual) =
      refused(settings.copy(ranks = 2, resumePositions = Some(resumed.mkString(","))))(rows)
    assert(message(saved, usual.copy(seed = 6)).contains("another --seed"))
    assert(message(saved.take(3)).contains("another number of ranks than 3"))
    assert(message(saved.reverse).contains("give the positions of all ranks, in rank order"))
    assert(message(Seq("")).contains("'', of rank 0, is no position"))
    assert(message(saved :+ "no-position/").contains("'', of rank 0, is no position"))
    assert(message(saved.updated(1, "position-2")).contains(
        "'position-2', of rank 1, is no position"))
    assert(message(saved.updated(2, saved(2) + ":exchange:5:whole:00000000000000ff")).contains(
        "rank 2 saved its position in the middle of an exchange"))
    assert(refused(usual.copy(ranks = 4, resumePositions = Some(saved.mkString(","))),
        saved.lift)(rows).contains("start the rank without its position"))
  }

  test("data with fewer elements than the saved positions say are refused, with both numbers") {
    def fewer(of: Int) = new DatumSource(
      sc.parallelize(0 until Partitions, Partitions).flatMap(part =>
        (0 until of).map(i => SupplyJobSuite.tuple(part * 100 + i))))
    val one = usual.copy(ranks = 1, shuffle = Shuffle.Off)
    def position(elements: Int) = run(one, _ => Stop(elements))(fewer(9))._2.head
    val (inside, atEnd) = (position(7), position(9))
    Seq(0, 1, 6).foreach { left =>
      val says =
        s"cannot resume after element 7 of partition 0: the partition has $left elements now"
      assert(refused(one, _ => Some(inside))(fewer(left)).contains(says))
      // With other ranks, or with resident blocks.
      assert(refused(one.copy(ranks = 2, resumePositions = Some(inside), resident = true))(fewer(
            left)).contains(says))
    }
    // As many as were taken.
    Seq(inside -> 7, atEnd -> 9).foreach { case (saved, left) =>
      val (after, _) = run(one, positions = _ => Some(saved))(fewer(left))
      assert(after.count(_._1 == 0) == (Partitions - 1) * left)
    }
  }

  test("rows in no certain order continue at whole partitions only") {
    def shuffled = rows(spark.range(0, Elements.toLong).repartition(Partitions, col("id")).toDF())
    val (_, saved) = run(usual, _ => Stop(1))(shuffled)
    val settings = usual.copy(ranks = 3, resumePositions = Some(saved.mkString(",")))
    assert(refused(settings)(shuffled).contains("cannot resume after element 1 of partition"))
  }
}

private object OtherRanksSuite {
  import Resuming.Stop

  private val Elements = 60
  private val Partitions = 7

  /** Seconds, also for ranks that wait while a busy machine starts Spark. */
  private val Timeout = 50.0

  private val fails = new AtomicBoolean

  /** The rest of an epoch, in which an element fails once. */
  private def failingOnce(i: Int): Datum.Tuple = {
    if (i % 8 == 7 && fails.getAndSet(false)) throw new IllegalStateException("fails once")
    (f"$i%08d", i.toString, 1, 1, 8, false, Array.fill(8)(i.toByte))
  }

  /** Two ranks are in the middle of epoch 1, one is at its end, one at its beginning. */
  private val InEpoch1 = Seq(Stop(25), Stop(22), Stop(ends = 2), Stop(ends = 1))

  /** (epoch, label) of what a rank has seen: an epoch's elements come before its end. */
  private def labels(seen: Seq[String]): Seq[(Int, Int)] = {
    def ended(answer: String) = answer.drop("END_OF_EPOCH ".length).toInt
    val last = seen.filter(_.startsWith("END_OF_EPOCH")).lastOption.fold(0)(ended(_) + 1)
    seen.foldRight((last, Seq.empty[(Int, Int)])) { case (answer, (epoch, found)) =>
      if (answer.startsWith("END_OF_EPOCH")) (ended(answer), found)
      else if (answer.startsWith("OK ")) (epoch, (epoch -> answer.drop(3).toInt) +: found)
      else (epoch, found)
    }._2
  }
}
