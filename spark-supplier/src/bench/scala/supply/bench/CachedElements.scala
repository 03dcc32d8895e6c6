package supply.bench

import org.apache.spark.SparkEnv
import org.apache.spark.storage.RDDBlockId

import supply.lmdb.{Datum, DatumBatch}

/** The elements of a source that Spark has cached in this JVM, by partition. Nothing is copied. */
private[bench] final class CachedElements(cached: Seq[Array[Any]]) {
  def count: Long = batchesOrTuples.map(_.fold(_.elements.toLong, _ => 1L)).sum

  /** Bytes of the elements' data. */
  def bytes: Long = batchesOrTuples.map(_.fold(_.dataBytes.toLong, _._7.length.toLong)).sum

  /** The arrays that hold the data, in order. Arrays of batches hold the keys, too. */
  def arrays: Array[Array[Byte]] = batchesOrTuples.map(_.fold(_.bytes, _._7)).toArray

  private def batchesOrTuples: Iterator[Either[DatumBatch, Datum.Tuple]] =
    cached.iterator.flatMap(_.iterator).map {
      case batch: DatumBatch => Left(batch)
      case tuple => Right(tuple.asInstanceOf[Datum.Tuple])
    }
}

private[bench] object CachedElements {
  def of(rddId: Int, partitions: Seq[Int]): CachedElements =
    new CachedElements(partitions.map { partition =>
      val block = SparkEnv.get.blockManager.getLocalValues(RDDBlockId(rddId, partition)).getOrElse(
        throw new IllegalStateException(
          s"partition $partition is not cached: give Spark more memory (--heap)"))
      block.data.toArray[Any]
    })
}
