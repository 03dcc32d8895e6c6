package supply.sources.rows

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.{Partition, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

import supply.core.SourceException
import supply.data.{ElementWriter, KeepingCursor, PartitionSizes, Source}

/** The rows of a DataFrame, which Spark computes or has cached. */
private[supply] final class RowSource(
    override val rdd: RDD[InternalRow], columns: IndexedSeq[RowColumn],
    override val isOrdered: Boolean = false, sizes: Option[PartitionSizes] = None)
    extends DataFrameSource(columns, sizes) {
  override def open(partition: Partition, context: TaskContext): KeepingCursor =
    new RowCursor(rdd.iterator(partition, context), columns.toArray)
}

private[supply] object RowSource {
  /** Throws a SupplyException if these rows cannot be supplied. A stream keeps its `lengths`. */
  def of(data: DataFrame, lengths: ListLengths): Source = {
    // Lazy, because it computes the stages in front of a shuffle: columns are refused before that.
    lazy val rows = data.queryExecution.toRdd
    var areKnown = true
    val columns = RowColumn.of(
      data.schema,
      column =>
        lengths.of(column, rows).getOrElse {
          if (!rows.map(_ => 0).isEmpty())
            throw new SourceException(
              s"column '${data.schema(column).name}' has no array, or its first one is empty, so the length of all is not " +
                "known: drop the column, or the rows whose array is empty")
          areKnown = false
          1
        })
    // If there is no row, the columns do not matter.
    if (!areKnown) new RowSource(rows, IndexedSeq.empty)
    else {
      val sizes = FrameSizes.of(data)
      ColumnarPlan.batches(data) match {
        case Some(batches) => new ColumnSource(batches, columns, data.schema, sizes)
        case None => new RowSource(rows, columns, sizes = sizes)
      }
    }
  }

  /** The same with other names, and arrays as bytes, so that no job asks for their length. */
  def withBytesOfLists(data: DataFrame, names: Seq[String]): RowSource = {
    val columns = RowColumn.withBytesOfLists(data.schema, names)
    new RowSource(data.queryExecution.toRdd, columns)
  }
}

private[rows] final class RowCursor(
    rows: Iterator[InternalRow], columns: Array[RowColumn]) extends KeepingCursor {
  private var row: InternalRow = _
  private var number = -1L
  private var taken = 0L
  private val kept = new ArrayBuffer[KeptRow]

  override def next(): Boolean = {
    val more = rows.hasNext
    if (more) {
      row = rows.next()
      number = taken
      taken += 1
    }
    more
  }

  override def keep(place: Int): Unit = {
    if (place == kept.size) kept += new KeptRow
    kept(place).keep(row, number)
  }

  override def recall(place: Int): Unit = {
    row = kept(place).row
    number = kept(place).number
  }

  override def write(to: ElementWriter): Unit = RowColumn.write(columns, row, to)

  override def describe: String = s"row $number of its partition"

  override def close(): Unit = ()
}

/** A copy of a row, because Spark reuses the memory of its rows, and the row's number. */
private final class KeptRow {
  var row: InternalRow = _
  var number = 0L

  def keep(current: InternalRow, number: Long): Unit = {
    current match {
      case unsafe: UnsafeRow if row.isInstanceOf[UnsafeRow] =>
        row.asInstanceOf[UnsafeRow].copyFrom(unsafe)
      case _ => row = current.copy()
    }
    this.number = number
  }
}
