package supply.bench

import java.util.SplittableRandom

import scala.collection.mutable

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.functions.col
import org.apache.spark.storage.StorageLevel
import org.apache.spark.unsafe.Platform

/** Key-value pairs in Spark's memory: Spark's own shuffles of them, and the same for ranks. */
private[bench] final class KeyedSession {
  private lazy val spark = SparkSession.builder().getOrCreate()
  private var made = Option.empty[DataFrame]

  def run(command: KeyedCommand): AnyRef = command match {
    case make: MakeKeyed => persist(make)
    case ShuffleKeyed(way, reducers, verify) => shuffle(way, reducers, verify)
    case SupplyKeyed(ranks, mappedFiles, namedPipes, timeout) =>
      val options = Map("ranks" -> ranks.toString, "mapped-files" -> mappedFiles,
        "named-pipes" -> namedPipes, "timeout" -> timeout.toString)
      val start = System.nanoTime()
      frame.write.format("supply").mode("append").options(options).save()
      Supplied(start)
  }

  /** Pairs as Spark's GroupByTest and SortByTest make them, the same in every run. */
  private def persist(command: MakeKeyed): KeyedTally = {
    val MakeKeyed(totalBytes, valueBytes, partitions) = command
    val pairs =
      spark.sparkContext.range(0, math.max(1L, totalBytes / valueBytes), 1, partitions).map {
        number =>
          val random = new SplittableRandom(number)
          val key = random.nextInt(Int.MaxValue).toLong
          val value = new Array[Byte](valueBytes)
          random.nextBytes(value)
          (key, value)
      }
    made.foreach(_.unpersist(blocking = true))
    made = Some(spark.createDataFrame(pairs).toDF("key", "value").persist(StorageLevel.MEMORY_ONLY))
    val tally = KeyedCount.of(frame.queryExecution.toRdd)
    val groups = frame.select("key").distinct().count()
    // Collect the garbage of making the pairs now, not during a measurement.
    System.gc()
    tally.copy(groups = groups)
  }

  private def shuffle(way: String, reducers: Int, verify: Boolean): Shuffled = {
    val start = System.nanoTime()
    val key = col("key")
    val shuffled = way match {
      case "group" => frame.repartition(reducers, key)
      case "sort" => frame.repartitionByRange(reducers, key).sortWithinPartitions("key")
    }
    val rows = shuffled.queryExecution.toRdd
    try {
      // A group must be read to be counted, as ranks do. In order, Spark needs to count rows only.
      val tally = if (way == "group") Some(KeyedCount.of(rows)) else None
      val count = tally.fold(rows.count())(_.elements)
      val nanos = System.nanoTime() - start
      Shuffled(nanos, count, if (verify) tally.orElse(Some(KeyedCount.of(rows))) else tally)
    } finally rows.cleanShuffleDependencies(blocking = true)
  }

  private def frame: DataFrame =
    made.getOrElse(throw new IllegalStateException("there are no pairs: send make_keyed first"))
}

/** What one partition has, counted as bench/c/exchange_rank.c counts it. */
private final case class KeyedPart(
    elements: Long, groups: Long, keySum: Long, bound: Long, first: Long, last: Long,
    inOrder: Boolean)

/** Counts rows where they are. Groups are counted by partition: a key in two of them counts twice. */
private object KeyedCount {
  def of(rows: RDD[InternalRow]): KeyedTally = {
    val parts = rows.mapPartitions { part =>
      val counter = new KeyedCounter
      part.foreach(row =>
        counter.add(row.getLong(0), sumOfWords(row.asInstanceOf[UnsafeRow], field = 1)))
      Iterator.single(counter.part)
    }.collect().toSeq.filter(_.elements > 0)
    val inOrder = parts.forall(_.inOrder) &&
      parts.zip(parts.drop(1)).forall { case (one, next) => one.last <= next.first }
    KeyedTally(parts.map(_.elements).sum, parts.map(_.groups).sum,
      unsigned(parts.map(_.keySum).sum), unsigned(parts.map(_.bound).sum), inOrder)
  }

  private def unsigned(value: Long): BigInt = BigInt(java.lang.Long.toUnsignedString(value))

  /** Spark fills the last word of a value with zeros, as sum_of_words() does. */
  private def sumOfWords(row: UnsafeRow, field: Int): Long = {
    val place = row.getLong(field)
    val start = row.getBaseOffset + (place >>> 32)
    val bytes = place & 0xffffffffL
    var sum = 0L
    var at = 0L
    while (at < bytes) {
      sum += Platform.getLong(row.getBaseObject, start + at)
      at += java.lang.Long.BYTES
    }
    sum
  }
}

private final class KeyedCounter {
  private val keys = new mutable.LongMap[Boolean]
  private var elements, keySum, bound, first, last = 0L
  private var inOrder = true

  def add(key: Long, valueSum: Long): Unit = {
    if (elements == 0) first = key else inOrder &= last <= key
    last = key
    keys.update(key, true)
    elements += 1
    keySum += key
    bound += (2 * key + 1) * valueSum
  }

  def part: KeyedPart = KeyedPart(elements, keys.size.toLong, keySum, bound, first, last, inOrder)
}
