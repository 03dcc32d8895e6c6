package supply.bench

import java.nio.ByteBuffer

import supply.pair.Pair

/**
 * The JVM's bulk put of the same cached arrays, element after element, into the slots of the same pair's ring, one after the
 * other: no pipe, no rank, no small columns.
 */
private[bench] final class PutAlone(pair: Pair, cached: CachedElements) extends Limit {
  private val arrays: Array[Array[Byte]] = cached.partitions.iterator.flatMap(_.iterator).map(_._7).toArray
  private val bytes = cached.bytes
  private var turn = 0

  override def measure(): Measured = {
    val ring = pair.ring.toArray
    val meter = new Meter
    var slot = next(ring)
    var i = 0
    while (i < arrays.length) {
      val array = arrays(i)
      if (array.length > slot.remaining()) slot = next(ring)
      slot.put(array)
      i += 1
    }
    meter.measured(arrays.length.toLong, bytes)
  }

  private def next(ring: Array[ByteBuffer]): ByteBuffer = {
    turn += 1
    ring(turn % ring.length).clear()
  }

  override def close(): Unit = ()
}
