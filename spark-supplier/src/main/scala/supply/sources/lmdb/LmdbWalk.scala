package supply.sources.lmdb

import java.nio.ByteBuffer
import java.util.Arrays

import scala.annotation.tailrec

import org.fusesource.lmdbjni.{Constants, DirectBuffer, GetOp, LMDBException, SeekOp}

import supply.core.SourceException
import supply.data.ForeignFile

/**
 * Walks over an LMDB in key order. `key` and `value` point into its pages until the next move. Maps
 * the file again after `window` bytes of entries ([[MappedWindow]]). Passes the keys of `skip` over.
 * For one thread.
 */
final class LmdbWalk(file: String, window: Long = MappedWindow.bytes,
    skip: Seq[Array[Byte]] = Nil) extends AutoCloseable {
  private var mapping = new LmdbMapping(file, own = window < Long.MaxValue)
  private var passed = 0L
  private var open = true

  val key = new DirectBuffer(ByteBuffer.allocateDirect(0))
  val value = new DirectBuffer(ByteBuffer.allocateDirect(0))

  /** Where in the file an address within the current entry is. */
  def offsetOf(address: Long, of: ForeignFile): Long = mapping.places.offsetOf(address, of)

  /** Moves to the first entry whose key is at least `first`, also one of `skip`; false: none is. */
  def seek(first: Array[Byte]): Boolean = {
    val wanted = ByteBuffer.allocateDirect(first.length)
    wanted.put(first)
    key.wrap(wanted)
    mapping.cursor.seekPosition(key, value, SeekOp.RANGE) != LMDBException.NOTFOUND
  }

  /** Moves to the next entry (the first, at the start); false if there is none. */
  def next(): Boolean = {
    if (passed >= window) mapAgain()
    val found = move(Constants.NEXT)
    if (found) passed += key.capacity() + value.capacity()
    found
  }

  /** Moves to the last entry; false if there is none. */
  def last(): Boolean = {
    val found = mapping.cursor.position(key, value, Constants.LAST) != LMDBException.NOTFOUND
    found && (!isSkipped || move(Constants.PREV))
  }

  /** Moves over entries in that direction, to one that is not skipped. */
  @tailrec private def move(direction: GetOp): Boolean =
    if (mapping.cursor.position(key, value, direction) == LMDBException.NOTFOUND) false
    else !isSkipped || move(direction)

  private def isSkipped: Boolean = skip.exists(skipped =>
    skipped.length == key.capacity() && Arrays.equals(skipped, keyBytes))

  private def mapAgain(): Unit = {
    val here = keyBytes
    mapping.close()
    mapping = new LmdbMapping(file, own = true)
    passed = 0
    if (!seek(here)) throw new SourceException(
      s"the LMDB $file has changed during a run: it must not be written to")
  }

  /** A copy of the key. */
  def keyBytes: Array[Byte] = LmdbWalk.bytes(key)

  override def close(): Unit = if (open) {
    open = false
    mapping.close()
  }
}

private[lmdb] object LmdbWalk {
  /** A copy of all bytes of the buffer. */
  def bytes(of: DirectBuffer): Array[Byte] = {
    val copy = new Array[Byte](of.capacity())
    of.getBytes(0, copy)
    copy
  }
}
