package supply.sources

import java.util.Arrays

import supply.data.BatchWriter

/**
 * The Datums that a cursor keeps. Bytes stay in their batch, and are copied only into the block.
 * Numbers are copied when a Datum is kept: its batch is in the processor's cache then.
 */
private final class KeptDatums {
  import KeptDatums._

  private var batches = new Array[DatumBatch](64)

  /** Place after place, the numbers of its Datum: [[Fields]]. */
  private var fields = new Array[Int](Fields * batches.length)

  /** Reused by each write, for each of the fields; and the arrays of the values. */
  private var columns = Array.fill(Fields)(Array.emptyIntArray)
  private var arrays = Array.empty[Array[Byte]]

  def keep(place: Int, batch: DatumBatch, at: Int): Unit = {
    if (place >= batches.length) {
      batches = Arrays.copyOf(batches, 2 * place)
      fields = Arrays.copyOf(fields, Fields * batches.length)
    }
    batches(place) = batch
    val first = Fields * place
    val keyStart = batch.start(Datum.Key, at)
    val dataStart = batch.start(Datum.Data, at)
    fields(first + Datum.Key) = batch.number(Datum.Key, at) - keyStart
    fields(first + Datum.Label) = batch.number(Datum.Label, at)
    fields(first + Datum.Channels) = batch.number(Datum.Channels, at)
    fields(first + Datum.Height) = batch.number(Datum.Height, at)
    fields(first + Datum.Width) = batch.number(Datum.Width, at)
    fields(first + Datum.Encoded) = batch.number(Datum.Encoded, at)
    fields(first + Datum.Data) = batch.number(Datum.Data, at) - dataStart
    fields(first + KeyStart) = keyStart
    fields(first + DataStart) = dataStart
    fields(first + At) = at
  }

  /** Keeps `count` Datums of the batch in `places(from)` and the next places. */
  def keep(places: Array[Int], from: Int, batch: DatumBatch, at: Int, count: Int): Unit = {
    var i = 0
    while (i < count) {
      keep(places(from + i), batch, at + i)
      i += 1
    }
  }

  def batch(place: Int): DatumBatch = batches(place)

  /** The number of the element in its batch. */
  def at(place: Int): Int = fields(Fields * place + At)

  /** See [[supply.data.GatheringCursor]]. */
  def bytes(places: Array[Int], from: Int, count: Int): Long = {
    var sum = 0L
    var i = from
    while (i < from + count) {
      val first = Fields * places(i)
      sum += fields(first + Datum.Key) + fields(first + Datum.Data)
      i += 1
    }
    sum
  }

  def write(to: BatchWriter, places: Array[Int], from: Int, count: Int): Unit = {
    gather(places, from, count)
    to.gatherBytes(Datum.Key, arrays, columns(KeyStart), columns(Datum.Key), count)
    var column = Datum.Label
    while (column < Datum.Encoded) {
      to.putInts(column, columns(column), 0, count)
      column += 1
    }
    to.putBooleans(Datum.Encoded, columns(Datum.Encoded), 0, count)
    to.gatherBytes(Datum.Data, arrays, columns(DataStart), columns(Datum.Data), count)
  }

  private def gather(places: Array[Int], from: Int, count: Int): Unit = {
    if (count > arrays.length) {
      columns = Array.fill(Fields)(new Array[Int](count))
      arrays = new Array(count)
    }
    var i = 0
    while (i < count) {
      val place = places(from + i)
      arrays(i) = batches(place).bytes
      var field = 0
      while (field < Fields) {
        columns(field)(i) = fields(Fields * place + field)
        field += 1
      }
      i += 1
    }
  }
}

private object KeptDatums {
  // After the columns of a Datum: for key and data, these have the length.
  private final val KeyStart = DatumBatch.Columns
  private final val DataStart = KeyStart + 1
  private final val At = DataStart + 1
  private final val Fields = At + 1
}
