package supply.contract

import java.nio.ByteBuffer

/**
 * Where a source puts the values of one element, column by column. Every column is given exactly
 * one value per element. Any call may end the element early when it does not fit into the block (see
 * [[ElementCursor.write]]).
 */
trait ElementWriter {

  def putInt(column: Int, value: Int): Unit

  def putBoolean(column: Int, value: Boolean): Unit

  /**
   * Space for `bytes` bytes of a variable-width column: a buffer whose next `bytes` bytes the
   * source fills at once, before any other call. For the largest column this is the mapped file itself.
   */
  def reserve(column: Int, bytes: Int): ByteBuffer
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
