package supply.driver

import java.util.concurrent.atomic.AtomicInteger

import com.google.protobuf.ByteString
import org.apache.spark.{Partition, SparkConf, SparkContext, TaskContext}
import org.apache.spark.rdd.RDD
import org.scalatest.funsuite.AnyFunSuite

import supply.data.{ElementWriter, KeepingCursor, Source}
import supply.plan.{Shuffle, Uneven}
import supply.protocol.Schema
import supply.sources.lmdb.{LmdbRDD, LmdbSource, TestLmdb}
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
      TestLmdb.key(i) -> TestLmdb.datum(i).toBuilder.setData(data).build().toByteArray
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

  private def same(resident: Boolean = false, shuffle: Shuffle = Shuffle.Partitions,
      uneven: Uneven = Uneven.Keep): Unit = withLmdb { lmdb =>
    def seen(inPlace: Boolean) = {
      val (seen, outcome) = supply(2, epochs = 3, resident = resident, shuffle = shuffle,
        uneven = uneven, ringBytes = 64 * 8192, take = datums)(new LmdbSource(lmdb, inPlace))
      outcome.fold(throw _, _.map(_.elements)) -> seen
    }
    val copied = seen(inPlace = false)
    assert(copied._1.sum >= 3 * 54 && copied._2.forall(_.last == "END_OF_DATA"))
    assert(seen(inPlace = true) == copied)
  }

  test("in the order of partitions")(same())

  test("shuffled elements")(same(shuffle = Shuffle.Elements(7)))

  test("resident blocks, which refer to the same data in each epoch")(same(resident = true))

  test("equal steps")(same(uneven = Uneven.Drop))

  test("the bytes of a run in place are those of the values, too") {
    withLmdb { lmdb =>
      def bytes(inPlace: Boolean) =
        supply(1)(new LmdbSource(lmdb, inPlace))._2.fold(throw _, _.head.bytes)
      val values = (0 until 60).map(_ * 211 % 900).sum
      assert(bytes(inPlace = true) > values && bytes(inPlace = false) > values)
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

  /** Fails at the sixth element of partitions. */
  final class Failing(source: Source) extends Source {
    override def rdd: RDD[_] = source.rdd
    override def schema: Schema = source.schema
    override def mainColumn: Option[Int] = source.mainColumn
    override def partitionElements: Option[IndexedSeq[Long]] = source.partitionElements
    override def open(partition: Partition, context: TaskContext): KeepingCursor = {
      val cursor = source.open(partition, context)
      var moves = 0
      new KeepingCursor {
        override def next(): Boolean = {
          moves += 1
          if (moves == 6 && context.attemptNumber() == 0 && failures.getAndDecrement() > 0)
            throw new IllegalStateException("once more")
          cursor.next()
        }
        override def keep(place: Int): Unit = cursor.keep(place)
        override def recall(place: Int): Unit = cursor.recall(place)
        override def write(to: ElementWriter): Unit = cursor.write(to)
        override def describe: String = cursor.describe
        override def close(): Unit = cursor.close()
      }
    }
  }
}
