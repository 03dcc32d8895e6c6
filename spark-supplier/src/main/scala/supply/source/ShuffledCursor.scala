package supply.source

import java.util.{Arrays, Random}

/**
 * An order of elements that the seed fixes: each is drawn from the next `buffer` elements that have
 * not been drawn. They are kept in numbered places.
 *
 * @param firstAhead how many are drawn together, which does not change the order; asked for when the first are kept
 * @param keepNext keeps at most that number of further elements, each in the next place of the array;
 *                 returns their number
 */
private[supply] final class Draws(buffer: Int, seed: Long, firstAhead: => Int = 1)(
    keepNext: (Array[Int], Int) => Int) {
  private val random = new UnsharedRandom(seed)
  private lazy val ahead = firstAhead

  /** The places of the elements to draw from: the first `size`. */
  private var places = Array.emptyIntArray
  private var size = 0

  /** The places of the elements drawn together: `count`, and the current one is at `at`. */
  var drawn: Array[Int] = Array.emptyIntArray
  var count = 0
  var at = 0

  /** Places that keep nothing any more: the next elements go there. */
  private var free = Array.emptyIntArray

  /** The place of the current element. */
  def place: Int = drawn(at)

  /** Moves on by one; false at the end. */
  def next(): Boolean = {
    at += 1
    if (at >= count) draw()
    at < count
  }

  private def draw(): Unit = {
    if (places.isEmpty) fill()
    val written = drawn
    drawn = free
    free = written
    at = 0
    count = 0
    val kept = keepNext(free, ahead)
    while (count < ahead && size > 0) {
      val i = random.nextInt(size)
      drawn(count) = places(i)
      if (count < kept) places(i) = free(count)
      else {
        size -= 1
        places(i) = places(size)
      }
      count += 1
    }
  }

  private def fill(): Unit = {
    places = new Array(math.min(buffer, 256))
    var isEnd = false
    while (size < buffer && !isEnd) {
      if (size == places.length) places = Arrays.copyOf(places, 2 * size)
      val next = Array.range(size, math.min(places.length, buffer))
      val kept = keepNext(next, next.length)
      System.arraycopy(next, 0, places, size, kept)
      size += kept
      isEnd = kept < next.length
    }
    drawn = Array.range(size, size + ahead)
    free = new Array(ahead)
  }
}

/** The elements of a cursor in the order of [[Draws]]: many at once, if the cursor can write many. */
private[supply] final class ShuffledCursor(
    cursor: KeepingCursor, buffer: Int, seed: Long) extends BatchCursor {
  private val gathering: Option[GatheringCursor] = cursor match {
    case gathering: GatheringCursor => Some(gathering)
    case _ => None
  }
  private val draws =
    new Draws(buffer, seed, if (gathering.isDefined) 256 else 1)(keepNext)

  private def keepNext(places: Array[Int], count: Int): Int = {
    var i = 0
    while (i < count && cursor.next()) {
      cursor.keep(places(i))
      i += 1
    }
    i
  }

  override def next(): Boolean = draws.next()

  override def write(to: ElementWriter): Unit = {
    cursor.recall(draws.place)
    cursor.write(to)
  }

  override def ready: Int = if (gathering.isDefined) draws.count - draws.at else 0

  override def bytes(count: Int): Long = gathering.get.bytes(draws.drawn, draws.at, count)

  override def referencedBytes(count: Int): Long =
    gathering.get.referencedBytes(draws.drawn, draws.at, count)

  override def write(to: ElementWriter, count: Int): Unit = {
    gathering.get.write(to, draws.drawn, draws.at, count)
    draws.at += count - 1
  }

  override def describe: String = {
    cursor.recall(draws.place)
    cursor.describe
  }

  override def close(): Unit = cursor.close()
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
