package supply.source

import java.util.{Arrays, Random}

/**
 * The elements of a cursor in an order that the seed fixes: each is drawn from the next `buffer`
 * elements that have not been drawn. The cursor keeps these. If the cursor can write many at once,
 * some are drawn ahead, which does not change the order.
 */
private[supply] final class ShuffledCursor(
    cursor: KeepingCursor, buffer: Int, seed: Long) extends BatchCursor {
  private val gathering: Option[GatheringCursor] = cursor match {
    case gathering: GatheringCursor => Some(gathering)
    case _ => None
  }
  private val ahead = if (gathering.isDefined) ShuffledCursor.Ahead else 1

  private val random = new UnsharedRandom(seed)

  /** The places of the elements to draw from: the first `size`. */
  private var places = Array.emptyIntArray
  private var size = 0

  /** The places of the elements drawn together: `drawnCount`, and the current one is at `at`. */
  private var drawn = Array.emptyIntArray
  private var drawnCount = 0
  private var at = 0

  /** Places that keep nothing any more: the next elements go there. */
  private var free = Array.emptyIntArray

  override def next(): Boolean = {
    at += 1
    if (at >= drawnCount) draw()
    at < drawnCount
  }

  private def draw(): Unit = {
    if (places.isEmpty) fill()
    val written = drawn
    drawn = free
    free = written
    at = 0
    drawnCount = 0
    val kept = cursor.keepNext(free, ahead)
    while (drawnCount < ahead && size > 0) {
      val i = random.nextInt(size)
      drawn(drawnCount) = places(i)
      if (drawnCount < kept) places(i) = free(drawnCount)
      else {
        size -= 1
        places(i) = places(size)
      }
      drawnCount += 1
    }
  }

  private def fill(): Unit = {
    places = new Array(ShuffledCursor.Ahead)
    var isEnd = false
    while (size < buffer && !isEnd) {
      if (size == places.length) places = Arrays.copyOf(places, 2 * size)
      val next = Array.range(size, math.min(places.length, buffer))
      val kept = cursor.keepNext(next, next.length)
      System.arraycopy(next, 0, places, size, kept)
      size += kept
      isEnd = kept < next.length
    }
    drawn = Array.range(size, size + ahead)
    free = new Array(ahead)
  }

  override def write(to: ElementWriter): Unit = {
    cursor.recall(drawn(at))
    cursor.write(to)
  }

  override def ready: Int = if (gathering.isDefined) drawnCount - at else 0

  override def bytes(count: Int): Long = gathering.get.bytes(drawn, at, count)

  override def referencedBytes(count: Int): Long =
    gathering.get.referencedBytes(drawn, at, count)

  override def write(to: BatchWriter, count: Int): Unit = {
    gathering.get.write(to, drawn, at, count)
    at += count - 1
  }

  override def describe: String = {
    cursor.recall(drawn(at))
    cursor.describe
  }

  override def close(): Unit = cursor.close()
}

private[supply] object ShuffledCursor {
  /** The number of elements that are drawn together. */
  private final val Ahead = 256
}

/**
 * Java's Random without its atomic updates. Java specifies the sequence of a seed, so it is the
 * same with every version. For one thread.
 */
private[source] final class UnsharedRandom(seed: Long) extends Random {
  private var state = (seed ^ UnsharedRandom.Multiplier) & UnsharedRandom.Mask

  override protected def next(bits: Int): Int = {
    state = (state * UnsharedRandom.Multiplier + 0xbL) & UnsharedRandom.Mask
    (state >>> (48 - bits)).toInt
  }
}

private object UnsharedRandom {
  private final val Multiplier = 0x5deece66dL
  private final val Mask = (1L << 48) - 1
}
