package supply.data

import java.util.Arrays

/** Values of foreign files in numbered places, as views need them. For one thread. */
final class ForeignValues(capacity: Int = 64) {
  /** Bytes of each value. */
  private[supply] var lengths = new Array[Int](capacity)

  /** Where it begins in its file. */
  private[supply] var offsets = new Array[Long](capacity)

  /** Its first four bytes, little-endian; zeros follow a shorter value. */
  private[supply] var starts = new Array[Int](capacity)

  /** The next eight bytes of a value that is so short that it stands in its view. */
  private[supply] var rests = new Array[Long](capacity)

  def set(place: Int, length: Int, offset: Long, start: Int, rest: Long): Unit = {
    if (place >= lengths.length) grow(2 * place)
    lengths(place) = length
    offsets(place) = offset
    starts(place) = start
    rests(place) = rest
  }

  /** Copies one place of other values. */
  def copy(place: Int, from: ForeignValues, at: Int): Unit =
    set(place, from.lengths(at), from.offsets(at), from.starts(at), from.rests(at))

  private def grow(size: Int): Unit = {
    lengths = Arrays.copyOf(lengths, size)
    offsets = Arrays.copyOf(offsets, size)
    starts = Arrays.copyOf(starts, size)
    rests = Arrays.copyOf(rests, size)
  }
}
