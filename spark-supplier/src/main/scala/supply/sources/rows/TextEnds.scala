package supply.sources.rows

import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}

/** How many bytes the values of a column of texts or bytes have, added up over a batch. */
private[rows] final class TextEnds(i: Int, column: RowColumn) {
  private val isText = column.column.format == "u"
  private var ends = Array(0L)

  def load(batch: ColumnarBatch): Unit = {
    val vector = batch.column(i)
    if (ends.length <= batch.numRows) ends = new Array(batch.numRows + 1)
    var row = 0
    while (row < batch.numRows) {
      ends(row + 1) = ends(row) + (if (vector.isNullAt(row)) 0 else length(vector, row))
      row += 1
    }
  }

  private def length(vector: ColumnVector, row: Int): Int = vector match {
    case written: WritableColumnVector if !written.hasDictionary => written.getArrayLength(row)
    case _ if isText => vector.getUTF8String(row).numBytes
    case _ => vector.getBinary(row).length
  }

  def bytes(from: Int, count: Int): Long = ends(from + count) - ends(from)
}
