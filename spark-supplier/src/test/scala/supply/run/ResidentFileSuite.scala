package supply.run

import java.nio.file.{Files, Path, Paths}
import java.nio.file.attribute.FileTime
import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicInteger

import scala.jdk.CollectionConverters._

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.rdd.RDD
import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumSource
import supply.core.Deadline
import supply.lmdb.{LmdbRDD, LmdbSource, TestLmdb}
import supply.plan.{Shuffle, Uneven}
import supply.protocol.Schema
import supply.source.{KeepingCursor, KeepingSource}
import supply.task.{SupplySettings, TaskReport}
import supply.testing.TemporaryFolder
import supply.testing.Background.{inBackground, result}

/** Whole runs with resident files: real ranks see the same elements as without. */
class ResidentFileSuite extends AnyFunSuite with RunsWithRanks {
  private type Outcome = (Seq[Seq[String]], Either[Throwable, Seq[TaskReport]])

  private def withLmdb(body: (Path, LmdbRDD) => Unit): Unit = TemporaryFolder { folder =>
    val database = TestLmdb.numbered(folder.resolve("db"), 60)
    body(folder.resolve("resident"), LmdbRDD.open(sc, database.toString, 6))
  }

  private def residentIn(folder: Path, quota: Option[Long] = None, keep: Option[String] = None)(
      settings: SupplySettings): SupplySettings = settings.copy(
    residentFolder = Some(folder.toString), residentQuota = quota, keep = keep)

  private def run(lmdb: LmdbRDD, ranks: Int = 2, epochs: Int = 3, blockElements: Int = 4,
      position: Option[String] = None)(more: SupplySettings => SupplySettings): Outcome =
    supply(ranks, epochs = epochs, blockElements = Some(blockElements), position = position,
      more = more)(new ResidentFileSuite.Counted(lmdb))

  private def dataOf(folder: Path): Path = folder.resolveSibling("db").resolve("data.mdb")

  private def filesIn(folder: Path): Seq[String] = {
    val names = Files.list(folder)
    try names.iterator.asScala.map(_.getFileName.toString).toSeq.sorted
    finally names.close()
  }

  /** What the ranks see if all goes well. */
  private def seen(outcome: Outcome): Seq[Seq[String]] = {
    assert(outcome._2.isRight, outcome)
    outcome._1
  }

  private def message(outcome: Outcome): String = {
    val message = outcome._2.swap.toOption.get.getMessage
    assert(outcome._1.forall(_.last.contains(message)), outcome)
    message
  }

  test("the same blocks in the same order, and no file at the end") {
    withLmdb { (folder, lmdb) =>
      assert(seen(run(lmdb)(residentIn(folder))) == seen(run(lmdb)(identity)))
      assert(filesIn(folder) == Seq.empty)
    }
  }

  test("a kept file spares the next run the source") {
    withLmdb { (folder, lmdb) =>
      val first = seen(run(lmdb)(residentIn(folder, keep = Some(""))))
      val files = filesIn(folder)
      assert(files.size == 2)
      assert(files.forall(_.matches("[0-9a-f]{16}-[0-9a-f]{16}\\.[01]\\.kept")))
      ResidentFileSuite.opened.set(0)
      assert(seen(run(lmdb)(residentIn(folder, keep = Some("")))) == first)
      assert(ResidentFileSuite.opened.get == 0 && filesIn(folder) == files)
      // Another limit of elements makes other blocks.
      seen(run(lmdb, blockElements = 5)(residentIn(folder, keep = Some(""))))
      assert(ResidentFileSuite.opened.get == 6 && filesIn(folder).size == 4)
    }
  }

  test("a name, or another time of modification, makes another file") {
    withLmdb { (folder, lmdb) =>
      def keptNow(name: String) = {
        seen(run(lmdb, epochs = 1)(residentIn(folder, keep = Some(name))))
        filesIn(folder).size
      }
      assert(Seq("", "a", "a", "b").map(keptNow) == Seq(2, 4, 4, 6))
      Files.setLastModifiedTime(dataOf(folder), FileTime.fromMillis(1234567))
      assert(keptNow("a") == 8)
    }
  }

  Seq(4 -> 0, 2 -> 1, 10 -> 0).foreach { case (element, opened) =>
    test(s"a rank that brings a position at element $element of a partition") {
      withLmdb { (folder, lmdb) =>
        seen(run(lmdb, ranks = 1)(residentIn(folder, keep = Some(""))))
        val position = Some(s"position-1:1:1:3:$element:0000000000000000")
        val expected = seen(run(lmdb, ranks = 1, position = position)(identity))
        ResidentFileSuite.opened.set(0)
        assert(seen(run(lmdb, ranks = 1, position = position)(residentIn(folder,
              keep = Some("")))) == expected)
        assert(ResidentFileSuite.opened.get == opened)
      }
    }
  }

  test("the rest of an epoch comes from the source, also if there is a kept file") {
    withLmdb { (folder, lmdb) =>
      Seq(1, 3, 5).foreach { partition =>
        val position = Some(s"position-1:0:1:$partition:4:0000000000000000")
        def resumed(more: SupplySettings => SupplySettings) =
          seen(run(lmdb)(more.andThen(_.copy(resumePositions = position))))
        val expected = resumed(identity)
        Seq.fill(2)(resumed(residentIn(folder, keep = Some("")))).foreach(lines =>
          assert(lines == expected))
      }
    }
  }

  test("rows in no certain order do not continue from a file that another run has written") {
    withLmdb { (folder, lmdb) =>
      val rows = new DatumSource(TestLmdb.tuples(lmdb).repartition(6))
      def from(position: Option[String]) =
        supply(1, epochs = 3, blockElements = Some(4), position = position,
          more = residentIn(folder, keep = Some("mine")))(rows)
      seen(from(None))
      assert(message(from(Some("position-1:1:1:3:4:0000000000000000"))).contains(
          "cannot resume after element 4 of partition 3"))
      seen(from(Some("position-1:1:1:3:0:0000000000000000")))
    }
  }

  test("an epoch after which nobody needs the file writes none") {
    withLmdb { (folder, lmdb) =>
      // Its blocks do not fit into the quota.
      seen(run(lmdb, epochs = 1)(residentIn(folder, quota = Some(8192))))
      assert(filesIn(folder) == Seq.empty)
    }
  }

  test("no file is left if a rank dies and does not come back") {
    withLmdb { (folder, lmdb) =>
      val (_, outcome) = supply(1, epochs = 3, blockElements = Some(4), timeout = 3,
        more = settings => residentIn(folder)(settings.copy(waitForRank = true)),
        take = rank => {
          val first = rank("next")
          assert(filesIn(folder).nonEmpty)
          rank.kill()
          import rank.paths._
          Seq(mappedFile, requestPipe, notificationPipe).foreach(file =>
            Files.delete(Paths.get(file)))
          Seq(first)
        })(new ResidentFileSuite.Counted(lmdb))
      assert(outcome.isLeft && filesIn(folder) == Seq.empty)
    }
  }

  test("a task that still writes when its run has ended removes its file") {
    withLmdb { (folder, lmdb) =>
      val outcome = inBackground(supply(1, epochs = 2, more = residentIn(folder))(
          new ResidentFileSuite.Counted(lmdb, ResidentFileSuite.hold)))
      ResidentFileSuite.isHeld.await()
      val file = folder.resolve(filesIn(folder).head)
      // Where the end of the run does not find it, as one that the task makes afterwards.
      val aside = Files.move(file, folder.resolveSibling("aside"))
      sc.cancelAllJobs()
      assert(result(outcome)._2.isLeft)
      Files.move(aside, file)
      ResidentFileSuite.isReleased.countDown()
      assert(new Deadline(60).poll(10)(filesIn(folder).isEmpty))
    }
  }

  test("two runs read one kept file at the same time") {
    withLmdb { (folder, lmdb) =>
      def one() = seen(run(lmdb, ranks = 1)(residentIn(folder, keep = Some(""))))
      val first = one()
      ResidentFileSuite.opened.set(0)
      assert(Seq.fill(2)(inBackground(one())).map(result(_)) == Seq(first, first))
      assert(ResidentFileSuite.opened.get == 0)
    }
  }

  test("a quota that is too small is an error") {
    withLmdb { (folder, lmdb) =>
      val header = message(run(lmdb)(residentIn(folder, quota = Some(20000))))
      assert(header.contains(s"this rank may write 10000 bytes into the resident folder $folder"))
      assert(header.contains("--resident-quota") && header.contains("; 0 are written"))
      val later = message(run(lmdb)(residentIn(folder, quota = Some(160000))))
      assert(later.contains("; 77824 are written"))
      assert(filesIn(folder) == Seq.empty)
    }
  }

  test("options that say something else about later epochs are refused") {
    withLmdb { (folder, lmdb) =>
      val resident = residentIn(folder) _
      def refused(more: SupplySettings => SupplySettings) =
        message(run(lmdb)(resident.andThen(more)))
      assert(refused(_.copy(resident = true)).contains("--resident keeps the blocks"))
      assert(refused(_.copy(uneven = Uneven.Drop)).contains("--resident-folder repeats"))
      assert(refused(_.copy(shuffle = Shuffle.Elements(4))).contains("--resident-folder repeats"))
      assert(refused(_.copy(residentFolder = Some("here"))).contains("an absolute path"))
      assert(refused(_.copy(residentFolder = None, keep = Some(""))).contains("--keep is for"))
      for (more <- Seq(resident, (_: SupplySettings).copy(resident = true))) {
        val inPlace = supply(2, more = more)(new LmdbSource(lmdb, inPlace = true))
        assert(message(inPlace).contains("--in-place lets the ranks read"))
      }
      assert(Files.notExists(folder))
    }
  }

  test("data without a path needs a name to be kept") {
    withLmdb { (folder, lmdb) =>
      def kept(name: String) =
        supply(1, more = residentIn(folder, keep = Some(name)))(
          new DatumSource(TestLmdb.tuples(lmdb)))
      assert(message(kept("")).contains("name it, as keep="))
      assert(message(kept("true")).contains("keep=true does not say which data it is"))
      assert(seen(kept("mine")) == seen(kept("mine")) && filesIn(folder).size == 1)
    }
  }
}

private object ResidentFileSuite {
  /** An LMDB that counts how often a partition is opened. */
  final class Counted(lmdb: LmdbRDD, opening: () => Unit = () => ()) extends KeepingSource {
    private val source = new LmdbSource(lmdb, inPlace = false)
    override def rdd: RDD[_] = lmdb
    override def schema: Schema = source.schema
    override def mainColumn: Option[Int] = source.mainColumn
    override def partitionElements: Option[IndexedSeq[Long]] = source.partitionElements
    override def identity: Option[String] = source.identity
    override def open(partition: Partition, context: TaskContext): KeepingCursor = {
      opened.incrementAndGet()
      opening()
      source.open(partition, context)
    }
  }

  val opened = new AtomicInteger

  /** Holds a task, also one that is killed. */
  val hold: () => Unit = () => {
    isHeld.countDown()
    var interrupted = false
    while (isReleased.getCount > 0)
      try isReleased.await()
      catch { case _: InterruptedException => interrupted = true }
    if (interrupted) Thread.currentThread().interrupt()
  }

  lazy val isHeld, isReleased = new CountDownLatch(1)
}
