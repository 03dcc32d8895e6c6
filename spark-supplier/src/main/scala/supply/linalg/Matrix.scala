package supply.linalg

import java.nio.{ByteBuffer, ByteOrder}

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.DataFrame

/**
 * A matrix that ranks hold. `isArray`: it is small, and each rank has all of it; otherwise each rank
 * has some of its rows, which may have keys.
 */
final class Matrix private (private[linalg] val ranks: Ranks, private[supply] val handle: Long,
    val rows: Long, val columns: Long, val isArray: Boolean) {
  /** All values, row after row, in the driver's memory: at most 2 GiB. */
  def toArray: Array[Double] = {
    val parts = ranks.fetch(this)
    val values = new Array[Double](Math.toIntExact(rows * columns))
    var at = 0
    parts.foreach { part =>
      val numbers = ByteBuffer.wrap(part).order(ByteOrder.LITTLE_ENDIAN).asDoubleBuffer()
      val count = numbers.remaining
      numbers.get(values, at, count)
      at += count
    }
    values
  }

  /** The values as bytes, little-endian. */
  def toBytes: Array[Byte] = ranks.fetch(this) match {
    case Seq(one) => one
    case parts => Array.concat(parts: _*)
  }

  /**
   * Its rows as a DataFrame: the columns "key", if they have keys, and "row", an array of doubles. Spark
   * reads a copy that the ranks write now, in place, also when they have ended
   * ([[supply.api.Results.release]]).
   */
  def toDF: DataFrame = ranks.read(this)

  /** Frees its memory. The handle must not be used any more. */
  def drop(): Unit = ranks.drop(this)

  /** The same with the next command to these ranks, so that it costs no Spark job of its own. */
  def forget(): Unit = ranks.forget(this)

  override def toString: String = s"Matrix $handle of $rows × $columns"
}

private[linalg] object Matrix {
  def of(ranks: Ranks, described: JsonNode): Matrix = new Matrix(ranks,
    described.path("handle").asLong, described.path("rows").asLong,
    described.path("columns").asLong, described.path("kind").asText == "array")
}
