package supply.sources.lmdb

import org.fusesource.lmdbjni.{Cursor, Transaction}

/** A cursor on a mapping of a data file: on the mapping of the process, or on one of its own. */
private[lmdb] final class LmdbMapping(file: String, own: Boolean) extends AutoCloseable {
  private val env = if (own) LmdbEnvironments.open(file) else LmdbEnvironments.acquire(file)
  private var transaction: Transaction = null

  val cursor: Cursor =
    try {
      transaction = env.createReadTransaction()
      env.openDatabase(transaction, null, 0).openCursor(transaction)
    } catch {
      case e: Throwable =>
        release()
        throw e
    }

  private def release(): Unit = {
    if (transaction != null) transaction.close()
    if (own) env.close() else LmdbEnvironments.release(file)
  }

  override def close(): Unit = {
    cursor.close()
    release()
  }
}
