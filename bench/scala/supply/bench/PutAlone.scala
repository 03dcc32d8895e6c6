package supply.bench

import java.nio.ByteBuffer

import supply.pair.Pair

/**
 * The JVM's bulk put of the same cached arrays, one after the other, into the slots of the same
 * pair's ring: no pipe, no rank, no columns.
 */
private[bench] final class PutAlone(pair: Pair, cached: CachedElements) extends Limit {
  private val arrays = cached.arrays
  private val (count, bytes) = (cached.count, cached.bytes)
  private var turn = 0

  override def measure(): Measured = {
    val ring = pair.ring.toArray
    val meter = new Meter
    var slot = next(ring)
    var i = 0
    while (i < arrays.length) {
      val array = arrays(i)
      var put = 0
      while (put < array.length) {
        if (!slot.hasRemaining) slot = next(ring)
        val n = math.min(slot.remaining(), array.length - put)
        slot.put(array, put, n)
        put += n
      }
      i += 1
    }
    meter.measured(count, bytes)
  }

  private def next(ring: Array[ByteBuffer]): ByteBuffer = {
    turn += 1
    ring(turn % ring.length).clear()
  }

  override def close(): Unit = ()
}
