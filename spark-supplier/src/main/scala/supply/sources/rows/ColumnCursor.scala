package supply.sources.rows

import org.apache.spark.sql.vectorized.ColumnarBatch

import supply.data.{BatchCursor, BatchWriter, ElementWriter}

/** Rows in batches of columns, as Spark reads files: columns are copied whole. */
private[rows] final class ColumnCursor(
    batches: Iterator[ColumnarBatch], columns: Array[RowColumn]) extends BatchCursor {
  private val many = columns.map(column => ColumnValues.of(column.column.format))

  /** Bytes of a row that a writer reserves, without texts and bytes. */
  private val fixedBytes =
    columns.indices.filter(i => columns(i).isReserved).map(columns(_).width.toLong).sum
  private val texts = columns.indices.filter(columns(_).width == 0).map(i =>
    new TextEnds(i, columns(i))).toArray

  private var batch: ColumnarBatch = _
  private var size = 0

  /** The current row in the batch. */
  private var at = -1
  private var rowsBefore = 0L

  override def next(): Boolean = {
    at += 1
    while (at >= size && batches.hasNext) load(batches.next())
    at < size
  }

  private def load(next: ColumnarBatch): Unit = {
    rowsBefore += size
    batch = next
    size = next.numRows
    at = 0
    texts.foreach(_.load(next))
  }

  override def ready: Int = size - at

  override def bytes(count: Int): Long = {
    var bytes = count * fixedBytes
    var i = 0
    while (i < texts.length) {
      bytes += texts(i).bytes(at, count)
      i += 1
    }
    bytes
  }

  override def write(to: BatchWriter, count: Int): Unit = {
    var i = 0
    while (i < columns.length) {
      val vector = batch.column(i)
      many(i) match {
        case Some(values) if !vector.hasNull => values.write(vector, at, count, i, to)
        case _ => writeEach(i, count, to)
      }
      i += 1
    }
    at += count - 1
  }

  private def writeEach(i: Int, count: Int, to: BatchWriter): Unit = {
    val column = columns(i)
    var row = at
    while (row < at + count) {
      column.write(batch.getRow(row), i, to)
      row += 1
    }
  }

  override def write(to: ElementWriter): Unit = RowColumn.write(columns, batch.getRow(at), to)

  override def describe: String = s"row ${rowsBefore + at} of its partition"

  override def close(): Unit = ()
}
