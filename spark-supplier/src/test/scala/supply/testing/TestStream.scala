package supply.testing

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.channels.FileChannel
import java.nio.file.{Path, Paths, StandardOpenOption}
import java.util.concurrent.TimeUnit

import scala.util.Using

import org.apache.spark.SparkContext
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.streaming.{StreamingQuery, Trigger}

import supply.protocol.Layout

/**
 * Real ranks, and a streaming query whose batches are the same each time that they are computed.
 * Its checkpoint is in its folder.
 */
final class TestStream(
    sc: SparkContext, folder: Path, ranks: Int, timeout: Double = 20) extends AutoCloseable {
  val spark: SparkSession = SparkSession.builder().config(sc.getConf).config(
    "spark.sql.shuffle.partitions", 3).getOrCreate()
  private val configFiles = TestRank.configFiles(folder, ranks)
  private var processes = Seq.empty[TestRank]
  private var queries = Seq.empty[StreamingQuery]

  /** Starts ranks, with the positions that are given. */
  def open(ringBytes: Long = 16 * 4096, positions: Seq[String] = Seq.empty): Seq[TestRank] =
    (0 until ranks).map(i => openOne(i, ringBytes, positions.lift(i)))

  /** Starts a rank again. */
  def openAgain(number: Int, position: String): TestRank =
    openOne(number, 16 * 4096, Some(position))

  private def openOne(number: Int, ringBytes: Long, position: Option[String]): TestRank = {
    val rank = new TestRank(configFiles.read()(number))
    processes :+= rank
    assert(rank.open(ringBytes, rank = number, timeout = timeout, position = position) == "OK")
    rank
  }

  /**
   * Batches of `rows` numbers in `partitions` partitions. With `pause`, the next batch comes after
   * an hour.
   */
  def start(
      rows: Int = 20, partitions: Int = 4, pause: Boolean = false,
      checkpoint: String = "checkpoint", mode: String = "append",
      options: Map[String, String] = Map.empty, ofSession: Boolean = true)(
      make: DataFrame => DataFrame = identity): StreamingQuery = {
    val numbers =
      session(ofSession).readStream.format("rate-micro-batch").option("rowsPerBatch",
        rows.toLong).option(
        "numPartitions", partitions.toLong).load()
    val writer = make(numbers).writeStream.format("supply").outputMode(mode).option(
      "checkpointLocation", folder.resolve(checkpoint).toString)
      .option("ranks", ranks.toLong).option("mapped-files", configFiles.mappedFiles).option(
        "named-pipes", configFiles.namedPipes)
      .option("timeout", timeout).option("block-elements", 3L).options(options)
    val query = (if (pause) writer.trigger(Trigger.ProcessingTime("1 hour")) else writer).start()
    queries :+= query
    query
  }

  /** A query that writes nothing, of this session or of another one. */
  def elsewhere(name: String, ofSession: Boolean = true): StreamingQuery = {
    val query = session(ofSession).readStream.format("rate-micro-batch").option("rowsPerBatch",
      1L).load().writeStream.format("noop").queryName(name)
      .option("checkpointLocation", folder.resolve(s"$name-$ofSession").toString).trigger(
        Trigger.ProcessingTime("1 hour")).start()
    queries :+= query
    query
  }

  /** This one, or another one of the same Spark. */
  private def session(isThis: Boolean) = if (isThis) spark else spark.newSession()

  /** Waits until `batches` batches are complete. */
  def await(query: StreamingQuery, batches: Int): Unit =
    TestStream.await {
      query.exception.foreach(throw _);
      query.lastProgress != null && query.lastProgress.batchId >= batches - 1
    }

  override def close(): Unit = {
    processes.foreach(_.kill())
    queries.foreach(_.stop())
  }
}

object TestStream {

  def await(probe: => Boolean): Unit = {
    val end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60)
    while (!probe) {
      assert(System.nanoTime() < end, "not within 60 seconds")
      Thread.sleep(10)
    }
  }

  /** Runs `body` with the header of a rank's mapped file, to read and write. */
  def header[A](rank: TestRank)(body: ByteBuffer => A): A = page(rank, 0)(body)

  /** The same with a slot of 4096 bytes. */
  def slot[A](rank: TestRank, index: Int)(body: ByteBuffer => A): A =
    page(rank, Layout.Constant.RING_OFFSET + index * 4096L)(body)

  private def page[A](rank: TestRank, offset: Long)(body: ByteBuffer => A): A =
    Using.resource(FileChannel.open(Paths.get(rank.paths.mappedFile), StandardOpenOption.READ,
        StandardOpenOption.WRITE)) { file =>
      body(file.map(FileChannel.MapMode.READ_WRITE, offset, 4096).order(ByteOrder.LITTLE_ENDIAN))
    }

  /** (epoch, partition, element) of all elements in blocks. */
  def elements(seen: Seq[String]): Seq[(Int, Int, Int)] =
    seen.filter(_.startsWith("OK ")).map(_.split(' ').tail.map(_.toInt)).flatMap { words =>
      (words(3) until words(3) + words(4)).map((words(1), words(2), _))
    }
}
