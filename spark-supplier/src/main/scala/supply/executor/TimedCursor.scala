package supply.executor

import supply.data.ElementCursor

/** Time that a task has waited for its source, in nanoseconds. */
private[supply] final class SourceClock {
  var nanos = 0L

  def time[A](weight: Long)(body: => A): A = {
    val start = System.nanoTime()
    try body
    finally nanos += (System.nanoTime() - start) * weight
  }
}

/**
 * Measures how long the source takes for the first element of a partition, and for every 17th of
 * the others, counted 17-fold: reading the clock takes as long as copying a small element. Sources
 * fetch every 2^n elements, so a period of 2^n would time all fetches, or none.
 */
private[supply] final class TimedCursor(cursor: ElementCursor, clock: SourceClock) {
  private var count = 0L

  def next(): Boolean = {
    val n = count
    count += 1
    if (n == 0) clock.time(1)(cursor.next())
    else if (n % TimedCursor.Stride == 0) clock.time(TimedCursor.Stride)(cursor.next())
    else cursor.next()
  }
}

private[supply] object TimedCursor {
  final val Stride = 17L
}
