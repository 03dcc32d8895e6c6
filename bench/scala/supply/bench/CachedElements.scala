package supply.bench

import org.apache.spark.SparkEnv
import org.apache.spark.storage.RDDBlockId

import supply.source.Datum

/** The very elements that Spark has cached in this JVM, by partition: nothing is copied. */
private[bench] final class CachedElements(val partitions: Seq[Array[Datum.Tuple]]) {
  def count: Long = partitions.iterator.map(_.length.toLong).sum
  def bytes: Long = partitions.iterator.flatMap(_.iterator).map(_._7.length.toLong).sum
}

private[bench] object CachedElements {

  def of(rddId: Int, partitions: Seq[Int]): CachedElements = new CachedElements(partitions.map { partition =>
    val block = SparkEnv.get.blockManager.getLocalValues(RDDBlockId(rddId, partition)).getOrElse(
      throw new IllegalStateException(s"partition $partition is not cached: give Spark more memory (--heap)"))
    block.data.map(_.asInstanceOf[Datum.Tuple]).toArray
  })
}
