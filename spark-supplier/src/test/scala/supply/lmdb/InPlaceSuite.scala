package supply.lmdb

import java.nio.file.Files
import java.util.concurrent.atomic.AtomicInteger

import com.google.protobuf.ByteString
import org.apache.spark.{Partition, SparkConf, SparkContext, TaskContext}
import org.apache.spark.rdd.RDD
import org.scalatest.funsuite.AnyFunSuite

import supply.plan.{Shuffle, Uneven}
import supply.protocol.Schema
import supply.run.RunsWithRanks
import supply.source.{ElementWriter, GatheringCursor, KeepingCursor, KeepingSource, Source}
import supply.testing.{TemporaryFolder, TestRank}

/** Whole runs in place: real ranks see the same elements as in copies. */
class InPlaceSuite extends AnyFunSuite with RunsWithRanks {
  // A task that fails is tried again.
  override protected lazy val sc: SparkContext = SparkContext.getOrCreate(new SparkConf()
      .setMaster("local[2,2]").setAppName(suiteName).set("spark.ui.enabled", "false").set(
        "spark.log.level", "OFF"))

  private def withLmdb(body: LmdbRDD => Unit): Unit = TemporaryFolder { folder =>
    val entries = (0 until 60).map { i =>
      val data = ByteString.copyFrom(Array.tabulate(i * 211 % 900)(at => (at + i).toByte))
      TestLmdb.key(i) -> TestLmdb.datum(i).toBuilder.setHeight(1).setWidth(data.size).setData(
        data).build().toByteArray
    }
    body(LmdbRDD.open(sc, TestLmdb.write(folder.resolve("db"), entries).toString, 6))
  }

  /** Each datum, and each end, as the rank tells it. Which elements share a block does not matter. */
  private def datums(rank: TestRank): Seq[String] = {
    val seen = Seq.newBuilder[String]
    var next = rank("next")
    while (next.startsWith("OK ") || next.startsWith("END_OF_EPOCH")) {
      if (next.startsWith("OK ")) {
        val words = next.split(' ')
        (0 until words.last.toInt).foreach(i => seen += rank(s"datum $i"))
        assert(rank(s"release ${words(1)}") == "OK")
      } else seen += next
      next = rank("next")
    }
    seen += next
    seen.result()
  }

  private def same(shuffle: Shuffle = Shuffle.Partitions,
      uneven: Uneven = Uneven.Keep): Unit = withLmdb { lmdb =>
    def seen(inPlace: Boolean) = {
      val (seen, outcome) = supply(2, epochs = 3, shuffle = shuffle,
        uneven = uneven, ringBytes = 64 * 8192, take = datums)(new LmdbSource(lmdb, inPlace))
      outcome.fold(throw _, _.map(_.elements)) -> seen
    }
    val copied = seen(inPlace = false)
    assert(copied._1.sum >= 3 * 54 && copied._2.forall(_.last == "END_OF_DATA"))
    assert(seen(inPlace = true) == copied)
  }

  test("in the order of partitions")(same())

  test("shuffled elements")(same(shuffle = Shuffle.Elements(7)))

  test("equal steps")(same(uneven = Uneven.Drop))

  test("the bytes of a run in place are those of the values, too") {
    withLmdb { lmdb =>
      def bytes(inPlace: Boolean) =
        supply(1)(new LmdbSource(lmdb, inPlace))._2.fold(throw _, _.head.bytes)
      val values = (0 until 60).map(_ * 211 % 900).sum
      assert(bytes(inPlace = true) > values && bytes(inPlace = false) > values)
    }
  }

  test("an LMDB that is gone is named, and no task is tried again") {
    TemporaryFolder { folder =>
      val database = TestLmdb.numbered(folder.resolve("db"), 6)
      val lmdb = LmdbRDD.open(sc, database.toString, 2)
      Files.delete(database.resolve("data.mdb"))
      val (seen, outcome) = supply(1)(new LmdbSource(lmdb, inPlace = true))
      val message = outcome.swap.toOption.get.getMessage
      assert(message.contains("data.mdb cannot be supplied in place (--in-place): "))
      assert(seen.head.last.contains("cannot be supplied in place"))
    }
  }

  test("a block of a run has at most 4096 elements, so that ranks begin soon") {
    TemporaryFolder { folder =>
      val value = TestLmdb.datum(1).toByteArray
      val database =
        TestLmdb.write(folder.resolve("db"), (0 until 5000).map(TestLmdb.key(_) -> value))
      val lmdb = LmdbRDD.open(sc, database.toString, 1)
      val (seen, outcome) = supply(1, blockElements = None, ringBytes = 4 << 20,
        blockBytes = 1 << 20)(new LmdbSource(lmdb, inPlace = true))
      assert(outcome.isRight, outcome)
      assert(seen.head.filter(_.startsWith("OK ")).map(_.split(' ').last) == Seq("4096", "904"))
    }
  }

  test("a task that fails is tried again, and continues after its blocks") {
    withLmdb { lmdb =>
      def seen(source: Source) = {
        val (seen, outcome) = supply(2, epochs = 2, take = datums)(source)
        assert(outcome.isRight, outcome)
        seen
      }
      val failing = new InPlaceSuite.Failing(new LmdbSource(lmdb, inPlace = true))
      InPlaceSuite.failures.set(2)
      assert(seen(failing) == seen(new LmdbSource(lmdb, inPlace = false)))
      assert(InPlaceSuite.failures.get <= 0)
    }
  }
}

private object InPlaceSuite {
  /** How many tasks fail yet. */
  val failures = new AtomicInteger

  /** The element of a partition at which tasks fail, from 1. */
  private final val FailsAt = 6

  /** Fails at that element. */
  final class Failing(source: LmdbSource) extends KeepingSource {
    override def rdd: RDD[_] = source.rdd
    override def schema: Schema = source.schema
    override def mainColumn: Option[Int] = source.mainColumn
    override def partitionElements: Option[IndexedSeq[Long]] = source.partitionElements
    override def open(partition: Partition, context: TaskContext): KeepingCursor =
      new FailingCursor(source.rdd.inPlaceCursor(partition, context), context.attemptNumber() == 0)
  }

  private final class FailingCursor(
      cursor: GatheringCursor, mayFail: Boolean) extends GatheringCursor {
    private var element = 0

    override def next(): Boolean = {
      element += 1
      if (element == FailsAt && mayFail && failures.getAndDecrement() > 0)
        throw new IllegalStateException("once more")
      cursor.next()
    }

    /** No batch goes past the element that fails. */
    override def ready: Int =
      if (element < FailsAt) math.min(cursor.ready, FailsAt - element) else cursor.ready

    override def write(to: ElementWriter, count: Int): Unit = {
      cursor.write(to, count)
      element += count - 1
    }

    override def bytes(count: Int): Long = cursor.bytes(count)
    override def referencedBytes(count: Int): Long = cursor.referencedBytes(count)
    override def bytes(places: Array[Int], from: Int, count: Int): Long =
      cursor.bytes(places, from, count)
    override def referencedBytes(places: Array[Int], from: Int, count: Int): Long =
      cursor.referencedBytes(places, from, count)
    override def write(to: ElementWriter, places: Array[Int], from: Int, count: Int): Unit =
      cursor.write(to, places, from, count)
    override def keep(place: Int): Unit = cursor.keep(place)
    override def recall(place: Int): Unit = cursor.recall(place)
    override def write(to: ElementWriter): Unit = cursor.write(to)
    override def describe: String = cursor.describe
    override def close(): Unit = cursor.close()
  }
}
