package supply.data

import java.nio.ByteBuffer

/**
 * Where a source puts the values of one element, column by column. Every column is given exactly
 * one value per element. Any call may end the element early when it does not fit into the block
 * (see [[ElementCursor.write]]).
 */
trait ElementWriter {

  /** Of a column of 32 bits an element, not a list's: a float as its bits. */
  def putInt(column: Int, value: Int): Unit

  /** The same for 64 bits. */
  def putLong(column: Int, value: Long): Unit

  def putBoolean(column: Int, value: Boolean): Unit

  /** Of a column that is nullable. */
  def putNull(column: Int): Unit

  /**
   * Space for `bytes` bytes of any other column: a buffer whose next `bytes` bytes the source fills
   * at once, in little-endian order, before any other call. For the main column this is the mapped
   * file itself.
   */
  def reserve(column: Int, bytes: Int): ByteBuffer
}

/**
 * Takes the values of many elements at once, from arrays that hold them side by side; the elements
 * have to fit.
 */
trait BatchWriter {

  /** `values(from)` and those behind it, `count` in all. */
  def putInts(column: Int, values: Array[Int], from: Int, count: Int): Unit

  /** The same; 0 is false, everything else true. */
  def putBooleans(column: Int, values: Array[Int], from: Int, count: Int): Unit

  /**
   * Values of variable width, one behind the other in `bytes`: the first begins at `start`, and
   * `ends` says where each ends.
   */
  def putBytes(
      column: Int, bytes: Array[Byte], start: Int, ends: Array[Int], from: Int, count: Int): Unit

  /**
   * The same from many arrays: `lengths(i)` bytes of `bytes(i)` from `starts(i)` on are one value,
   * `count` in all.
   */
  def gatherBytes(column: Int, bytes: Array[Array[Byte]], starts: Array[Int], lengths: Array[Int],
      count: Int): Unit
}

/** The elements of one partition, in order, read where the source has them. For one thread. */
trait ElementCursor extends AutoCloseable {

  /** Moves to the next element; false at the end. */
  def next(): Boolean

  /** Writes the current element. May be called again for the same element, when it did not fit. */
  def write(to: ElementWriter): Unit

  /** Names the current element in a message. */
  def describe: String
}

/** A cursor whose source has many elements side by side. */
trait BatchCursor extends ElementCursor {

  /** How many they are, the current one included. */
  def ready: Int

  /** What the first `count` of them have in the columns of variable width, in bytes. */
  def bytes(count: Int): Long

  /** Writes the first `count` of them, and moves to the last of these. */
  def write(to: BatchWriter, count: Int): Unit
}

/**
 * A cursor that can come back to an element: it keeps it in a place, a small number, for as long as
 * no other element is kept there.
 */
trait KeepingCursor extends ElementCursor {

  /** Keeps the element that `next()` has moved to. */
  def keep(place: Int): Unit

  /**
   * Makes the element that is kept there the current one. `next()` goes on where it would have gone
   * on without.
   */
  def recall(place: Int): Unit
}

/**
 * One that can write elements of many places at once: those of `places(from)` and behind it,
 * `count` in all, in this order.
 */
trait GatheringCursor extends KeepingCursor {

  /** What they have in the columns of variable width, in bytes. */
  def bytes(places: Array[Int], from: Int, count: Int): Long

  def write(to: BatchWriter, places: Array[Int], from: Int, count: Int): Unit
}
