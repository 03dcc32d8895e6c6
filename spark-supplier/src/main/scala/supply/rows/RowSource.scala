package supply.rows

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Ascending, Cast, RowOrdering, SortOrder, XxHash64}
import org.apache.spark.sql.catalyst.plans.physical.RoundRobinPartitioning
import org.apache.spark.sql.execution.exchange.{REPARTITION_BY_NUM, ShuffleExchangeExec}
import org.apache.spark.sql.execution.{SQLExecutionRDD, SortExec}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StringType
import org.apache.spark.sql.{DataFrame, SparkSession}
import org.apache.spark.{Partition, TaskContext}

import supply.protocol.{Column, Format, Schema}
import supply.source.{ElementCursor, PartitionSizes, Source}

/** The rows of a DataFrame, which Spark computes or has cached. */
private[supply] final class RowSource(
    override val rdd: RDD[InternalRow], columns: IndexedSeq[RowColumn],
    override val isOrdered: Boolean = false, sizes: Option[PartitionSizes] = None)
    extends DataFrameSource(columns, sizes) {
  override def open(partition: Partition, context: TaskContext): ElementCursor =
    new RunCursor(new RowsInOrder(rows(partition, context), columns.toArray))

  override protected def rows(
      partition: Partition, context: TaskContext): Iterator[InternalRow] =
    rdd.iterator(partition, context)
}

private[supply] object RowSource {
  /** Throws a SupplyException if these rows cannot be supplied. A stream keeps its `shapes`. */
  def of(data: DataFrame, shapes: Shapes): Source = {
    // Lazy, because it computes the stages in front of a shuffle: columns are refused before that.
    lazy val rows = data.queryExecution.toRdd
    lazy val found = shapes.of(data.schema, rows)
    val columns =
      RowColumn.of(data.schema, found.getOrElse(Vector.fill(data.schema.size)(Shape.Unknown)),
        shapes.forms)
    // If there is no row, the columns do not matter.
    if (found.isEmpty) new RowSource(rows, IndexedSeq.empty)
    else {
      val batches = ColumnarPlan.batches(data)
      if (batches.isEmpty) rows
      // From here on Spark knows the values of the plan's subqueries, and with them its files.
      val sizes = FrameSizes.of(data)
      batches.fold[Source](new RowSource(rows, columns, sizes = sizes))(
        new ColumnSource(_, columns, data.schema, sizes))
    }
  }

  /** The rows with other names, and arrays as bytes, so that no job asks for their length. */
  def withBytesOfLists(data: DataFrame, names: Seq[String]): RowSource = {
    val columns = RowColumn.withBytesOfLists(data.schema, names)
    new RowSource(data.queryExecution.toRdd, columns)
  }
}

/** The columns of a DataFrame as those of blocks. */
private[rows] abstract class DataFrameSource(
    private[rows] val columns: IndexedSeq[RowColumn],
    @transient override val partitionSizes: Option[PartitionSizes]) extends Source {
  override def schema: Schema = Schema(columns.map(_.column))

  override def openShuffled(
      partition: Partition, context: TaskContext, buffer: Int, seed: Long): ElementCursor =
    new RunCursor(new ShuffledRows(rows(partition, context), columns.toArray, buffer, seed,
        context))

  protected def rows(partition: Partition, context: TaskContext): Iterator[InternalRow]

  /** The widest entry without others within it. Text counts as wider than a number, bytes as wider than text. */
  override def mainColumn: Option[Int] = {
    val weights = schema.columns.flatMap(DataFrameSource.weights(_, isInList = false))
    if (weights.isEmpty) None
    else Some(weights.indexOf(weights.max)).filter(weights(_) > DataFrameSource.SmallBytes)
  }
}

private object DataFrameSource {
  private final val SmallBytes = 16
  private final val TextLength = 256
  private final val BytesLength = TextLength + 1

  /** What the column's values have, and those within it, as guessed: for each of its entries. */
  private def weights(column: Column, isInList: Boolean): IndexedSeq[Int] = {
    val format = Format.of(column)
    val own = format match {
      case Format.Fixed(bytes) => if (isInList) TextLength + bytes else bytes
      case Format.Variable => if (column.format == "z") BytesLength else TextLength
      case _ => 0
    }
    val within = isInList || column.format.startsWith("+w") || format == Format.Lists
    own +: column.children.flatMap(weights(_, within))
  }
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
      // Spark cannot compare, or hash, what has a variant in it, and Spark 3.5 no maps.
      val zone = Some(session.sessionState.conf.sessionLocalTimeZone)
      val comparable = dealt.output.map(column =>
        if (RowOrdering.isOrderable(column.dataType)) column else Cast(column, StringType, zone))
      val order = new XxHash64(comparable) +: comparable
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
