package supply.task

import supply.contract.ElementCursor

/**
 * Measures how long the source takes to come up with its next element. The first of a partition counts as it is; of the
 * others every 16th is timed and counted 16-fold, since reading the clock takes as long as copying a small element.
 */
private[task] final class TimedCursor(cursor: ElementCursor) {
  private var count = 0L
  var nanos = 0L

  def next(): Boolean = {
    val n = count
    count += 1
    if (n == 0) timed(1) else if (n % TimedCursor.Stride == 0) timed(TimedCursor.Stride) else cursor.next()
  }

  private def timed(weight: Long): Boolean = {
    val start = System.nanoTime()
    val more = cursor.next()
    nanos += (System.nanoTime() - start) * weight
    more
  }
}

private[task] object TimedCursor {
  final val Stride = 16L
}
