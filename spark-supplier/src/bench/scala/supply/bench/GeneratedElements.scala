package supply.bench

import java.util.SplittableRandom

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD

import supply.lmdb.Datum

/** Elements of pseudo-random bytes, the same in every run. */
private[bench] object GeneratedElements {
  def rdd(sc: SparkContext, command: Generate): RDD[Datum.Tuple] = {
    val Generate(channels, height, width, totalBytes, partitions) = command
    val elementBytes = channels * height * width
    val elements = math.max(1L, totalBytes / elementBytes)
    sc.range(0, elements, 1, partitions).map { i =>
      val data = new Array[Byte](elementBytes)
      new SplittableRandom(i).nextBytes(data)
      (f"$i%08d", (i % 10).toString, channels, height, width, false, data)
    }
  }
}
