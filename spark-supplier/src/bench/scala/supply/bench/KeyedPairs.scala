package supply.bench

import java.util.SplittableRandom

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD

/** Pairs as Spark's GroupByTest and SortByTest make them, the same in every run. */
private[bench] object KeyedPairs {
  type Pair = (Long, Array[Byte])

  def rdd(sc: SparkContext, command: MakeKeyed): RDD[Pair] = {
    val MakeKeyed(totalBytes, valueBytes, partitions) = command
    val elements = math.max(1L, totalBytes / valueBytes)
    sc.range(0, elements, 1, partitions).map { i =>
      val random = new SplittableRandom(i)
      val key = random.nextInt(Int.MaxValue).toLong
      val value = new Array[Byte](valueBytes)
      random.nextBytes(value)
      (key, value)
    }
  }
}
