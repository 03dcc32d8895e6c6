package supply.run

import java.util.concurrent.{CyclicBarrier, TimeUnit}

import org.scalatest.funsuite.AnyFunSuite

import supply.bench.DatumSource
import supply.core.ConfigException
import supply.lmdb.{Datum, LmdbRDD, LmdbSource, TestLmdb}
import supply.plan.Shuffle
import supply.protocol.Exchange
import supply.protocol.Layout.{MappedFileHeader => At}
import supply.rows.{Shapes, RowSource}
import supply.source.Source
import supply.testing.{LocalSession, TemporaryFolder, TestRank, TestStream}

/** Runs with --shuffle all. */
class ExchangeSuite extends AnyFunSuite with RunsWithRanks with LocalSession {
  private val all = Shuffle.All(fraction = 125000)

  private def datums(partitions: Int): Source =
    new DatumSource(sc.parallelize(0 until 4, partitions).map(SupplyJobSuite.tuple))

  /** What the rank knows as soon as anything is published: its exchange, and its columns. */
  private def announced(rank: TestRank, both: CyclicBarrier): Seq[String] = {
    TestStream.await(TestStream.header(rank)(_.getLong(At.published)) > 0)
    val known = TestStream.header(rank)(header =>
      Seq(Exchange.read(header).toString, header.getInt(At.schemaColumns).toString))
    val next = rank("next")
    both.await(60, TimeUnit.SECONDS)
    rank("abort the test has seen enough")
    known :+ next
  }

  /** The same of both ranks of a run; the second one gets no partition. */
  private def ofBoth(source: => Source): Seq[Seq[String]] = {
    val both = new CyclicBarrier(2)
    val (seen, outcome) =
      supply(2, seed = 99, shuffle = all, exchange = true, take = announced(_, both))(source)
    assert(outcome.isLeft)
    seen
  }

  private def assertKnown(seen: Seq[Seq[String]], columns: Int): Unit = seen.foreach { known =>
    val expected = Exchange.all(seed = 99, fraction = 125000)
    assert(known.init == Seq(expected.toString, columns.toString))
    assert(known.last.startsWith("ERROR ") && known.last.contains("supply_exchange_open()"))
  }

  test("each rank learns its exchange and its columns, also one without partitions") {
    assertKnown(ofBoth(datums(partitions = 1)), Datum.schema.columns.size)
  }

  test("so it does with rows of a DataFrame and with an LMDB") {
    assertKnown(ofBoth(RowSource.of(spark.range(0, 4, 1, 1).selectExpr("id", "array(id, 2) pair"),
          new Shapes)), columns = 2)
    TemporaryFolder { folder =>
      val database = TestLmdb.numbered(folder.resolve("db"), 4).toString
      assertKnown(ofBoth(new LmdbSource(LmdbRDD.open(sc, database, 1), inPlace = false)),
        Datum.schema.columns.size)
    }
  }

  test("a rank whose program does not exchange gets the refusal as Spark's failure") {
    val (seen, outcome) = supply(2, shuffle = all)(datums(partitions = 2))
    val message = outcome.left.toOption.get match {
      case e: ConfigException => e.getMessage
      case other => fail(other)
    }
    assert(message.contains("pair of rank ") && message.contains("does not exchange elements"))
    seen.foreach(answers => assert(answers.last == s"ERROR SUPPLY_ERROR_SPARK $message"))
  }
}
