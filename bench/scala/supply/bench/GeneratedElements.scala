package supply.bench

import java.util.SplittableRandom

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD

import supply.source.Datum

/** Elements of random bytes, the same in every run. */
private[bench] object GeneratedElements {

  def rdd(sc: SparkContext, elementBytes: Int, totalBytes: Long, partitions: Int): RDD[Datum.Tuple] = {
    val elements = math.max(1L, totalBytes / elementBytes)
    sc.range(0, elements, 1, partitions).map { i =>
      val data = new Array[Byte](elementBytes)
      new SplittableRandom(i).nextBytes(data)
      (f"$i%08d", (i % 10).toString, 1, 1, elementBytes, false, data)
    }
  }
}
