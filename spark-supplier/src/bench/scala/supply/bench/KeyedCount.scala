package supply.bench

import java.nio.{ByteBuffer, ByteOrder}

import scala.collection.mutable

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform

import supply.bench.KeyedPairs.Pair

/** What one partition has, counted as bench/c/keyed_tally.c counts it. */
private[bench] final case class KeyedPart(
    elements: Long, groups: Long, keySum: Long, bound: Long, first: Long, last: Long,
    inOrder: Boolean)

/** Counts groups by partition: a key in two partitions is counted twice. */
private[bench] object KeyedCount {
  def of(pairs: RDD[Pair]): KeyedTally = together(pairs.mapPartitions { part =>
    val counter = new KeyedCounter
    part.foreach { case (key, value) => counter.add(key, sumOfWords(value)) }
    Iterator.single(counter.part)
  })

  /** The same of rows of Spark, in which it reads the values where they are. */
  def ofRows(rows: RDD[InternalRow]): KeyedTally = together(rows.mapPartitions { part =>
    val counter = new KeyedCounter
    part.foreach {
      case row: UnsafeRow => counter.add(row.getLong(0), sumOfWords(row, field = 1))
      case row => counter.add(row.getLong(0), sumOfWords(row.getBinary(1)))
    }
    Iterator.single(counter.part)
  })

  private def together(counted: RDD[KeyedPart]): KeyedTally = {
    val parts = counted.collect().toSeq.filter(_.elements > 0)
    val inOrder = parts.forall(_.inOrder) &&
      parts.zip(parts.drop(1)).forall { case (one, next) => one.last <= next.first }
    KeyedTally(parts.map(_.elements).sum, parts.map(_.groups).sum,
      unsigned(parts.map(_.keySum).sum), unsigned(parts.map(_.bound).sum), inOrder)
  }

  private def unsigned(value: Long): BigInt = BigInt(java.lang.Long.toUnsignedString(value))

  /** As bench/c/checksum.c: the last word is filled with zeros. */
  private def sumOfWords(value: Array[Byte]): Long = {
    val words =
      ByteBuffer.wrap(java.util.Arrays.copyOf(value, (value.length + 7) / 8 * 8)).order(
        ByteOrder.LITTLE_ENDIAN).asLongBuffer()
    var sum = 0L
    while (words.hasRemaining) sum += words.get()
    sum
  }

  /** Spark fills the last word with zeros, too. */
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
