package supply.bench

import org.apache.spark.SparkEnv
import org.apache.spark.storage.RDDBlockId

/** The elements of a source that Spark has cached in this JVM. Nothing is copied. */
private[bench] final class CachedElements(batches: Seq[DatumBatch]) {
  def count: Long = batches.map(_.elements.toLong).sum

  /** Bytes of the elements' data. */
  def bytes: Long = batches.map(_.dataBytes.toLong).sum

  /** The arrays that hold keys and data, in order. */
  def arrays: Array[Array[Byte]] = batches.map(_.bytes).toArray
}

private[bench] object CachedElements {
  def of(rddId: Int, partitions: Seq[Int]): CachedElements =
    new CachedElements(partitions.flatMap { partition =>
      val block = SparkEnv.get.blockManager.getLocalValues(RDDBlockId(rddId, partition)).getOrElse(
        throw new IllegalStateException(
          s"partition $partition is not cached: give Spark more memory (--heap)"))
      block.data.map(_.asInstanceOf[DatumBatch])
    })
}
