package supply.source.lmdb

/** A cursor on a mapping of a database file: on that of the process, or on one of its own. */
private[lmdb] final class LmdbMapping(file: String, own: Boolean) extends AutoCloseable {
  private val env = if (own) LmdbEnvironments.open(file) else LmdbEnvironments.acquire(file)
  private val transaction = env.createReadTransaction()
  val cursor = env.openDatabase(transaction, null, 0).openCursor(transaction)

  override def close(): Unit = {
    cursor.close()
    transaction.close()
    if (own) env.close() else LmdbEnvironments.release(file)
  }
}
