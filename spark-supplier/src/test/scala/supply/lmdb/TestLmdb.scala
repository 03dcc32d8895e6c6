package supply.lmdb

import java.nio.file.{Files, Path}

import com.google.protobuf.ByteString
import org.fusesource.lmdbjni.{Database, Env, Transaction}

import supply.lmdb.CaffeProtos.{Datum => Proto}

/** Makes databases by lmdbjni, and Datums by protobuf. */
object TestLmdb {

  def write(folder: Path, entries: Iterable[(Array[Byte], Array[Byte])]): Path =
    change(folder) { (database, transaction) =>
      entries.foreach { case (key, value) => database.put(transaction, key, value) }
    }

  /** Changes a database, in one transaction. `name`: of a named one. */
  def change(folder: Path, mapSize: Long = 64L << 20, name: String = null)(
      body: (Database, Transaction) => Unit): Path = {
    Files.createDirectories(folder)
    val env = new Env()
    try {
      env.setMapSize(mapSize)
      env.setMaxDbs(4)
      env.open(folder.toString)
      val database = if (name == null) env.openDatabase() else env.openDatabase(name)
      val transaction = env.createWriteTransaction()
      body(database, transaction)
      transaction.commit()
      database.close()
    } finally env.close()
    folder
  }

  def key(i: Int): Array[Byte] = f"$i%08d".getBytes("US-ASCII")

  def datum(
      i: Int): Proto = Proto.newBuilder().setChannels(1).setHeight(2).setWidth(i).setLabel(i % 10)
    .setData(ByteString.copyFrom(Array.tabulate(2 * i)(j => (i + j).toByte))).build()

  /** Entries 0 until n. */
  def numbered(folder: Path, n: Int): Path =
    write(folder, (0 until n).map(i => key(i) -> datum(i).toByteArray))
}
