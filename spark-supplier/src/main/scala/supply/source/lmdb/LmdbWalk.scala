package supply.source.lmdb

import java.nio.ByteBuffer

import org.fusesource.lmdbjni.{Constants, DirectBuffer, GetOp, LMDBException, SeekOp}

/** A walk over the entries of an LMDB in key order; `key` and `value` point into its pages. For one thread. */
final class LmdbWalk(file: String) extends AutoCloseable {
  private val env = LmdbEnvironments.acquire(file)
  private val transaction = env.createReadTransaction()
  private val cursor = env.openDatabase(transaction, null, 0).openCursor(transaction)
  private var open = true

  val key = new DirectBuffer(ByteBuffer.allocateDirect(0))
  val value = new DirectBuffer(ByteBuffer.allocateDirect(0))

  /** Moves to the first entry whose key is not below `first`; false if there is none. */
  def seek(first: Array[Byte]): Boolean = {
    val wanted = ByteBuffer.allocateDirect(first.length)
    wanted.put(first)
    key.wrap(wanted)
    cursor.seekPosition(key, value, SeekOp.RANGE) != LMDBException.NOTFOUND
  }

  /** Moves to the next entry (the first, at the start); false if there is none. */
  def next(): Boolean = move(Constants.NEXT)

  private def move(operation: GetOp): Boolean = cursor.position(key, value, operation) != LMDBException.NOTFOUND

  def keyBytes: Array[Byte] = {
    val bytes = new Array[Byte](key.capacity())
    key.getBytes(0, bytes)
    bytes
  }

  override def close(): Unit = if (open) {
    open = false
    cursor.close()
    transaction.close()
    LmdbEnvironments.release(file)
  }
}
