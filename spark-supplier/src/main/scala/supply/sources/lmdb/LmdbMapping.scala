package supply.sources.lmdb

import org.fusesource.lmdbjni.{Cursor, LMDBException, Transaction}

import supply.core.SourceException

/** A cursor on a mapping of a data file: on the mapping of the process, or on one of its own. */
private[lmdb] final class LmdbMapping(file: String, own: Boolean) extends AutoCloseable {
  private val environment =
    if (own) LmdbEnvironments.open(file) else LmdbEnvironments.acquire(file)
  private val env = environment.env
  private var transaction: Transaction = null

  val cursor: Cursor =
    try {
      transaction = env.createReadTransaction()
      env.openDatabase(transaction, null, 0).openCursor(transaction)
    } catch {
      case e: Throwable =>
        release()
        throw (e match {
          case _: LMDBException => new SourceException(
              s"liblmdb cannot read $file: ${e.getMessage}. It must not be written to during a run",
              e)
          case other => other
        })
    }

  /** Where in the file addresses of the entries are. */
  def places: MappedPlaces = environment.places

  private def release(): Unit = {
    if (transaction != null) transaction.close()
    if (own) env.close() else LmdbEnvironments.release(file)
  }

  override def close(): Unit = {
    cursor.close()
    release()
  }
}
