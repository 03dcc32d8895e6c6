package supply.source

import java.nio.ByteBuffer

/**
 * Takes elements from a source: exactly one value per column for each. `column` counts the entries of
 * the schema: each column, then what is within it. If an element does not fit into the block, any call
 * may end it early (see [[ElementCursor.write]]).
 */
private[supply] trait ElementWriter {
  /** For a column of 32-bit values that are not a list; a float as its bits. */
  def putInt(column: Int, value: Int): Unit

  def putBoolean(column: Int, value: Boolean): Unit

  /**
   * Space for `bytes` bytes of any other column, little-endian: fill them before any other call.
   * For the main column this is the mapped file itself.
   */
  def reserve(column: Int, bytes: Int): ByteBuffer

  /** For a column of views: `count` values that stay in the file, from `places(from)` on. */
  def refer(column: Int, file: ForeignFile, values: ForeignValues, places: Array[Int], from: Int,
      count: Int): Unit = refuse()

  // The others take the values of many elements, column after column. Each column must get as many
  // values. A writer of Datums needs none of them.

  /** Space for `count` values of one width, which are not booleans: fill it as that of `reserve`. */
  def reserveValues(column: Int, count: Int): ByteBuffer = refuse()

  /** Space for `count` values of variable width: `lengths(from)` bytes, and so on. Fill it likewise. */
  def reserveBytes(column: Int, lengths: Array[Int], from: Int, count: Int): ByteBuffer = refuse()

  /** `count` booleans from `values(from)` on: 0 is false, 1 true. Those of nulls may have any value. */
  def putBits(column: Int, values: Array[Byte], from: Int, count: Int): Unit = refuse()

  /** Lists or maps with `lengths(from)` values, and so on, which the caller then writes to the next entry. */
  def putLists(column: Int, lengths: Array[Int], from: Int, count: Int): Unit = refuse()

  /** `count` structs or lists of fixed length, whose parts the caller then writes. */
  def putParents(column: Int, count: Int): Unit = refuse()

  /** What stands in place of a value that is null, or within one: for it, and for all within it. */
  def putBlank(column: Int): Unit = refuse()

  /**
   * Of the last `count` values of a nullable column, those are null whose byte from `nulls(from)` on
   * is 1, and not 0. They have just been written: bytes of no length, or any value. At most once.
   */
  def markNulls(column: Int, nulls: Array[Byte], from: Int, count: Int): Unit = refuse()

  /**
   * The same for a column that is not nullable, of structs of which these are null: its values become
   * zeros.
   */
  def clear(column: Int, nulls: Array[Byte], from: Int, count: Int): Unit = refuse()

  private def refuse(): Nothing = throw new UnsupportedOperationException
}

/** The elements of one partition, in order, read in the source's own memory. For one thread. */
private[supply] trait ElementCursor extends AutoCloseable {
  /** Moves to the next element; false at the end. */
  def next(): Boolean

  /** Writes the current element. Called again for the same element if it did not fit. */
  def write(to: ElementWriter): Unit

  /** Names the current element in a message. */
  def describe: String
}

/** A cursor whose source holds many elements in common arrays. */
private[supply] trait BatchCursor extends ElementCursor {
  /** The number of elements that can be written at once, the current one included. */
  def ready: Int

  /** Bytes of the first `count` of them that a writer reserves. */
  def bytes(count: Int): Long

  /** Bytes of values in foreign files, to which the first `count` of them refer. */
  def referencedBytes(count: Int): Long = 0

  /** Writes the first `count` of them, and moves to the last one written. */
  def write(to: ElementWriter, count: Int): Unit
}

/** A cursor that keeps elements in numbered places, each until another one is kept there. */
private[supply] trait KeepingCursor extends ElementCursor {
  /** Keeps the element that `next()` has moved to. */
  def keep(place: Int): Unit

  /** Makes the element kept there the current one. `next()` still continues after the last one. */
  def recall(place: Int): Unit
}

/** A cursor that can write elements of many places at once: `count` from `places(from)` on. */
private[supply] trait GatheringCursor extends KeepingCursor with BatchCursor {
  /** Bytes of these elements that a writer reserves. */
  def bytes(places: Array[Int], from: Int, count: Int): Long

  /** Bytes of values in foreign files, to which these elements refer. */
  def referencedBytes(places: Array[Int], from: Int, count: Int): Long = 0

  /** Writes these elements in this order. */
  def write(to: ElementWriter, places: Array[Int], from: Int, count: Int): Unit
}
