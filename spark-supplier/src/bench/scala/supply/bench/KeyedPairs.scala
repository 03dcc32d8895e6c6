package supply.bench

import java.util.SplittableRandom

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD

/** Pairs as Spark's GroupByTest and SortByTest make them, the same in every run. */
private[bench] object KeyedPairs {
  type Pair = (Long, Array[Byte])

  def rdd(sc: SparkContext, command: MakeKeyed): RDD[Pair] = {
    val MakeKeyed(totalBytes, valueBytes, partitions) = command
    sc.range(0, math.max(1L, totalBytes / valueBytes), 1, partitions).map(pair(_, valueBytes))
  }

  private def pair(number: Long, valueBytes: Int): Pair = {
    val random = new SplittableRandom(number)
    val key = random.nextInt(Int.MaxValue).toLong
    val value = new Array[Byte](valueBytes)
    random.nextBytes(value)
    (key, value)
  }
}
