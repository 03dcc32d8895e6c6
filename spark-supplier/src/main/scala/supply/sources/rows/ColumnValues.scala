package supply.sources.rows

import org.apache.spark.sql.vectorized.ColumnVector

import supply.data.BatchWriter

/** Writes many values of a column of Spark at once, none of which is null, as those of column `i`. */
private[rows] trait ColumnValues extends Serializable {
  def write(values: ColumnVector, from: Int, count: Int, i: Int, to: BatchWriter): Unit
}

private[rows] object ColumnValues {
  /** Values with this Arrow format; None: they are written one by one. */
  def of(format: String): Option[ColumnValues] = format match {
    case "i" | "tdD" => Some((values, from, count, i, to) =>
        to.putInts(i, values.getInts(from, count), 0, count))
    case "f" => Some((values, from, count, i, to) =>
        to.putInts(i, bits(values.getFloats(from, count)), 0, count))
    case "g" => Some { (values, from, count, i, to) =>
        to.reserveValues(i, count).asDoubleBuffer().put(values.getDoubles(from, count)); ()
      }
    case long if long == "l" || long.startsWith("tsu:") =>
      Some { (values, from, count, i, to) =>
        to.reserveValues(i, count).asLongBuffer().put(values.getLongs(from, count)); ()
      }
    case _ => None
  }

  private def bits(floats: Array[Float]): Array[Int] = {
    val bits = new Array[Int](floats.length)
    var i = 0
    while (i < floats.length) {
      bits(i) = java.lang.Float.floatToRawIntBits(floats(i))
      i += 1
    }
    bits
  }
}
