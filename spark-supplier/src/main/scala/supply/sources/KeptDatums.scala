package supply.sources

import java.util.Arrays

import supply.data.BatchWriter

/** The Datums that a cursor keeps: a batch and a number each, copied only into the block. */
private final class KeptDatums {
  private var batches = new Array[DatumBatch](64)
  private var numbers = new Array[Int](64)

  /** Reused by each write: the values of one column, or arrays, starts and lengths of bytes. */
  private var values = Array.emptyIntArray
  private var arrays = Array.empty[Array[Byte]]
  private var starts = Array.emptyIntArray

  def keep(place: Int, batch: DatumBatch, at: Int): Unit = {
    if (place == batches.length) {
      batches = Arrays.copyOf(batches, 2 * place)
      numbers = Arrays.copyOf(numbers, 2 * place)
    }
    batches(place) = batch
    numbers(place) = at
  }

  def batch(place: Int): DatumBatch = batches(place)

  /** The number of the element in its batch. */
  def at(place: Int): Int = numbers(place)

  /** See [[supply.data.GatheringCursor]]. */
  def bytes(places: Array[Int], from: Int, count: Int): Long = {
    var sum = 0L
    var i = from
    while (i < from + count) {
      val batch = this.batch(places(i))
      sum += batch.length(Datum.Key, at(places(i))) + batch.length(Datum.Data, at(places(i)))
      i += 1
    }
    sum
  }

  def write(to: BatchWriter, places: Array[Int], from: Int, count: Int): Unit = {
    if (count > values.length) {
      values = new Array(count)
      arrays = new Array(count)
      starts = new Array(count)
    }
    writeBytes(to, Datum.Key, places, from, count)
    var column = Datum.Label
    while (column < Datum.Encoded) {
      gather(column, places, from, count)
      to.putInts(column, values, 0, count)
      column += 1
    }
    gather(Datum.Encoded, places, from, count)
    to.putBooleans(Datum.Encoded, values, 0, count)
    writeBytes(to, Datum.Data, places, from, count)
  }

  private def gather(column: Int, places: Array[Int], from: Int, count: Int): Unit = {
    var i = 0
    while (i < count) {
      val place = places(from + i)
      values(i) = batch(place).number(column, at(place))
      i += 1
    }
  }

  private def writeBytes(
      to: BatchWriter, column: Int, places: Array[Int], from: Int, count: Int): Unit = {
    var i = 0
    while (i < count) {
      val place = places(from + i)
      arrays(i) = batch(place).bytes
      starts(i) = batch(place).start(column, at(place))
      values(i) = batch(place).length(column, at(place))
      i += 1
    }
    to.gatherBytes(column, arrays, starts, values, count)
  }
}
