package supply.bench

import java.nio.ByteBuffer
import java.util.SplittableRandom

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD

/** Pairs as Spark's GroupByTest and SortByTest make them, the same in every run. */
private[bench] object KeyedPairs {
  type Pair = (Long, Array[Byte])

  /** Partitions take turns on the command's nodes, as the ranks that get them do. */
  def rdd(sc: SparkContext, command: MakeKeyed): RDD[Pair] = {
    val MakeKeyed(totalBytes, valueBytes, partitions, nodes, repeats) = command
    val elements = math.max(1L, totalBytes / valueBytes)
    val placed = (0 until partitions).map(p => p -> nodes.lift(p % math.max(1, nodes.size)).toSeq)
    sc.makeRDD(placed).flatMap { p =>
      (elements * p / partitions until elements * (p + 1) / partitions).iterator.map(
        pair(_, valueBytes, repeats))
    }
  }

  private def pair(number: Long, valueBytes: Int, repeats: Int): Pair = {
    val random = new SplittableRandom(number)
    val key = random.nextInt(Int.MaxValue).toLong
    val value = new Array[Byte](valueBytes)
    if (repeats == 1) random.nextBytes(value) else fill(value, repeats, random)
    (key, value)
  }

  /** A rest of less than a word stays zero. */
  private def fill(value: Array[Byte], repeats: Int, random: SplittableRandom): Unit = {
    val words = ByteBuffer.wrap(value).asLongBuffer
    while (words.hasRemaining) {
      val word = random.nextLong()
      for (_ <- 0 until math.min(repeats, words.remaining)) words.put(word)
    }
  }
}
