package supply.bench

import java.nio.ByteBuffer

import org.apache.spark.SparkEnv
import org.apache.spark.storage.RDDBlockId

import supply.pair.Pair
import supply.source.Datum

/** What a figure is compared with, measured beside it in the same task. */
private[bench] trait Limit extends AutoCloseable {
  def measure(): Measured
}

/**
 * The JVM's bulk put of the same cached arrays, element after element, into the slots of the same pair's ring, one after the
 * other: no pipe, no rank, no small columns.
 */
private[bench] final class PutAlone(pair: Pair, arrays: Array[Array[Byte]]) extends Limit {
  private val bytes = arrays.iterator.map(_.length.toLong).sum
  private var turn = 0

  override def measure(): Measured = {
    val ring = pair.ring.toArray
    val start = System.nanoTime()
    var slot = next(ring)
    var i = 0
    while (i < arrays.length) {
      val array = arrays(i)
      if (array.length > slot.remaining()) slot = next(ring)
      slot.put(array)
      i += 1
    }
    Measured(start, System.nanoTime() - start, arrays.length.toLong, bytes)
  }

  private def next(ring: Array[ByteBuffer]): ByteBuffer = {
    turn += 1
    ring(turn % ring.length).clear()
  }

  override def close(): Unit = ()
}

private[bench] object PutAlone {

  /** The very arrays that Spark has cached of these partitions. */
  def cached(rddId: Int, partitions: Seq[Int]): Array[Array[Byte]] = partitions.iterator.flatMap { partition =>
    val block = SparkEnv.get.blockManager.getLocalValues(RDDBlockId(rddId, partition)).getOrElse(
      throw new IllegalStateException(s"partition $partition is not cached: give Spark more memory (--heap)"))
    block.data.map(_.asInstanceOf[Datum.Tuple]._7)
  }.toArray
}
