package supply.rows

import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Ascending, SortOrder, UnsafeRow, XxHash64}
import org.apache.spark.sql.catalyst.plans.physical.RoundRobinPartitioning
import org.apache.spark.sql.execution.exchange.{REPARTITION_BY_NUM, ShuffleExchangeExec}
import org.apache.spark.sql.execution.{SQLExecutionRDD, SortExec}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.{Partition, TaskContext}

import supply.core.SourceException
import supply.protocol.Schema
import supply.source.{ElementCursor, ElementWriter, KeepingCursor, PartitionSizes, Source}

/** The rows of a DataFrame, which Spark computes or has cached. */
private[supply] final class RowSource(
    override val rdd: RDD[InternalRow], columns: IndexedSeq[RowColumn],
    override val isOrdered: Boolean = false, sizes: Option[PartitionSizes] = None)
    extends DataFrameSource(columns, sizes) {
  override def open(partition: Partition, context: TaskContext): KeepingCursor = {
    val rows = rdd.iterator(partition, context)
    if (RowRunCursor.isFaster(columns)) new GatheredRowCursor(rows, columns.toArray)
    else new RowCursor(rows, columns.toArray)
  }

  override def openInOrder(partition: Partition, context: TaskContext): ElementCursor =
    if (RowRunCursor.isFaster(columns))
      new RowRunCursor(rdd.iterator(partition, context), columns.toArray)
    else new RowCursor(rdd.iterator(partition, context), columns.toArray)
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

  /** The rows with other names, and arrays as bytes, so that no job asks for their length. */
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

/** The columns of a DataFrame as those of blocks. */
private[rows] abstract class DataFrameSource(
    private[rows] val columns: IndexedSeq[RowColumn],
    @transient override val partitionSizes: Option[PartitionSizes]) extends Source {
  override def schema: Schema = Schema(columns.map(_.column))

  /** The widest column. Text counts as wider than any number, and bytes as wider than text. */
  override def mainColumn: Option[Int] = {
    val weights = columns.map { column =>
      if (column.width > 0) column.width
      else if (column.column.format == "z") DataFrameSource.BytesLength
      else DataFrameSource.TextLength
    }
    if (weights.isEmpty) None
    else Some(weights.indexOf(weights.max)).filter(weights(_) > DataFrameSource.SmallBytes)
  }
}

private object DataFrameSource {
  private final val SmallBytes = 16
  private final val TextLength = 256
  private final val BytesLength = TextLength + 1
}

/** The rows of a DataFrame, dealt to partitions in turn. The stages in front are not run again. */
private[supply] object EvenRows {
  /** Whether the rows of that source are a DataFrame's, and not read in place. */
  def canBeOf(own: Source): Boolean = own.isInstanceOf[DataFrameSource]

  /** `own`: the source of the DataFrame's own partitions. None: it cannot be repartitioned. */
  def of(data: DataFrame, own: Source, partitions: Int): Option[Source] = own match {
    case frame: DataFrameSource =>
      Some(new RowSource(rows(data, partitions), frame.columns, isOrdered = true))
    case _ => None
  }

  /**
   * Tasks that are tried again, and runs that resume, need the same rows in the same order. So Spark
   * sorts the rows before it deals them, by its setting, and each partition is sorted: by a hash, since
   * a rank that gets rows in the order of the label learns nothing.
   */
  private def rows(data: DataFrame, partitions: Int): RDD[InternalRow] = {
    val query = data.queryExecution
    val session = query.sparkSession
    val conf = session.sessionState.conf.clone()
    conf.setConf(SQLConf.SORT_BEFORE_REPARTITION, true)
    withActive(session)(SQLConf.withExistingConf(conf) {
      val dealt = ShuffleExchangeExec(RoundRobinPartitioning(partitions), query.executedPlan,
        REPARTITION_BY_NUM)
      val order = new XxHash64(dealt.output) +: dealt.output
      val sorted = SortExec(order.map(SortOrder(_, Ascending)), global = false, dealt)
      new SQLExecutionRDD(sorted.execute(), session.sessionState.conf)
    })
  }

  /** Operators take the session of their thread. */
  private def withActive[A](session: SparkSession)(body: => A): A = {
    val before = SparkSession.getActiveSession
    SparkSession.setActiveSession(session)
    try body
    finally before.fold(SparkSession.clearActiveSession())(SparkSession.setActiveSession(_))
  }
}

/** The length of each column's arrays: that of the first one found. For one thread. */
private[supply] final class ListLengths {
  private val found = mutable.Map.empty[Int, Int]

  /** None: no array, or an empty first one. If none is known, computes rows up to the first. */
  def of(column: Int, rows: RDD[InternalRow]): Option[Int] = found.get(column).orElse {
    val length = rows.filter(!_.isNullAt(column)).map(_.getArray(column).numElements()).take(
      1).headOption.filter(_ > 0)
    length.foreach(found.update(column, _))
    length
  }
}
