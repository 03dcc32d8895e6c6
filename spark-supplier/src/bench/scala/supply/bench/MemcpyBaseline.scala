package supply.bench

import java.nio.ByteBuffer

import supply.pair.Pair

/** Copies the cached arrays into the slots by the JVM's bulk put, without pipe, rank or columns. */
private[bench] final class MemcpyBaseline(pair: Pair, cached: CachedElements) extends Baseline {
  private val arrays = cached.arrays
  private val (count, bytes) = (cached.count, cached.bytes)
  private var turn = 0

  override def measure(): Measured = {
    val ring = pair.withMappedFile(file => Array.tabulate(file.blockCount)(file.slot)).get
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
