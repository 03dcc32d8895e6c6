package supply.source

import java.util.Random

import scala.collection.mutable.ArrayBuffer

import supply.contract.{ElementCursor, ElementWriter}

/**
 * The elements of a cursor in an order that the seed fixes: each is drawn from the next `buffer` that have not come yet. These are
 * copied, in memory that is used again: nothing is allocated for each element once the buffer is full.
 */
final class ShuffledCursor(cursor: ElementCursor, buffer: Int, seed: Long) extends ElementCursor {
  // Its sequence is specified: the order does not change with the version of a library.
  private val random = new Random(seed)
  private val kept = new ArrayBuffer[KeptElement]
  private var current = -1

  override def next(): Boolean = {
    if (current < 0) fill() else replaceCurrent()
    if (kept.nonEmpty) current = random.nextInt(kept.size)
    kept.nonEmpty
  }

  private def fill(): Unit = while (kept.size < buffer && cursor.next()) {
    kept += new KeptElement
    cursor.write(kept.last)
  }

  private def replaceCurrent(): Unit =
    if (cursor.next()) {
      kept(current).clear()
      cursor.write(kept(current))
    } else {
      kept(current) = kept.last
      kept.remove(kept.size - 1)
      ()
    }

  override def write(to: ElementWriter): Unit = kept(current).writeTo(to)

  override def describe: String = s"an element of ${kept(current).bytes} bytes, drawn from the shuffle buffer,"

  override def close(): Unit = cursor.close()
}
