package supply.lmdb

import java.nio.charset.StandardCharsets.ISO_8859_1
import java.nio.file.{Files, Path}

import com.google.protobuf.ByteString
import org.apache.spark.rdd.RDD
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

  /** The Datums as tuples, which stay valid. */
  def tuples(lmdb: LmdbRDD): RDD[Datum.Tuple] = lmdb.map(row =>
    (new String(row.getBinary(Datum.Key), ISO_8859_1), row.getInt(Datum.Label).toString,
      row.getInt(Datum.Channels), row.getInt(Datum.Height), row.getInt(Datum.Width),
      row.getBoolean(Datum.Encoded), row.getBinary(Datum.Data)))
}
