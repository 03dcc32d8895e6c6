package supply.executor

import supply.data.ElementCursor

/** How long a source was waited for. */
private[supply] final class SourceClock {
  var nanos = 0L

  def time[A](weight: Long)(body: => A): A = {
    val start = System.nanoTime()
    try body
    finally nanos += (System.nanoTime() - start) * weight
  }
}

/**
 * Measures how long the source takes to come up with its next element. The first of a partition
 * counts as it is; of the others every 16th is timed and counted 16-fold, since reading the clock
 * takes as long as copying a small element.
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
  final val Stride = 16L
}
