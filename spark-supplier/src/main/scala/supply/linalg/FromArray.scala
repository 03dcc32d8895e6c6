package supply.linalg

import java.io.{DataInputStream, FileInputStream}
import java.nio.{ByteBuffer, ByteOrder}

import org.apache.spark.SparkContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.mllib.linalg.Vectors
import org.apache.spark.mllib.linalg.distributed.IndexedRow
import org.apache.spark.sql.SparkSession

/** An array of the driver, sent to ranks. */
private[supply] object FromArray {
  private val partBytes = 64L << 20

  /**
   * Sends the array that a file on the driver's machine has: doubles, little-endian, row after row. The
   * rows keep their order, and their numbers are their keys. Throws as [[FromMLlib.matrix]] does.
   */
  def matrix(ranks: Ranks, file: String, rows: Long, columns: Int, sparse: Boolean): Matrix = {
    val context = SparkSession.active.sparkContext
    // A task carries at most spark.rpc.message.maxSize, so they are broadcast.
    val ofPart =
      math.max(1, math.min((rows + ranks.size - 1) / ranks.size, partBytes / (8L * columns)))
    val parts = read(context, file, rows, columns, ofPart)
    try {
      val indexed = context.parallelize(parts.indices, parts.size).flatMap { part =>
        parts(part).value.grouped(columns).zipWithIndex.map { case (row, i) =>
          IndexedRow(part * ofPart + i, Vectors.dense(row))
        }
      }
      FromMLlib.ordered(ranks, indexed, sparse)
    } finally parts.foreach(_.destroy())
  }

  private def read(context: SparkContext, file: String, rows: Long, columns: Int,
      ofPart: Long): IndexedSeq[Broadcast[Array[Double]]] = {
    val from = new DataInputStream(new FileInputStream(file))
    try {
      (0L until rows by ofPart).map { first =>
        val bytes = new Array[Byte](Math.toIntExact(8L * columns * math.min(ofPart, rows - first)))
        from.readFully(bytes)
        val values = new Array[Double](bytes.length / 8)
        ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asDoubleBuffer().get(values)
        context.broadcast(values)
      }.toIndexedSeq
    } finally from.close()
  }
}
