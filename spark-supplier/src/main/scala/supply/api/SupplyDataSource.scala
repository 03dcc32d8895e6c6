package supply.api

import java.util.{Collections, Locale, Map => JavaMap, Set => JavaSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.{Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.execution.datasources.DataSourceUtils
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.sources.{BaseRelation, CreatableRelationProvider, DataSourceRegister, StreamSinkProvider}
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.sql.{DataFrame, SQLContext, SaveMode, SparkSession}
import org.apache.spark.supply.{ClientJar, StreamingInternals}
import picocli.CommandLine.{Command, Mixin}

import supply.core.{BuiltFor, ConfigException}
import supply.results.ResultsTable
import supply.rows.{RefusedColumns, Shapes}
import supply.run.{Hubs, QueryStream, RunOptions, SupplyJob, WaitingRanks}
import supply.task.SupplySettings

/**
 * `df.write.format("supply").mode("append").option("ranks", 4)….save()`: supplies the rows of a
 * DataFrame to MPI ranks. `save()` returns when every rank has all its data. If the run fails, it
 * throws a SupplyException with the first cause. [[RunOptions]] has the options.
 *
 * `spark.read.format("supply").option("results", NAME)….load()`: the rows that the ranks have
 * written. [[ResultsOptions]] has the options. Spark asks for a table for writes and streams, too,
 * and writes to it by the two calls above, because it says that it cannot be written.
 */
final class SupplyDataSource extends TableProvider with CreatableRelationProvider
    with SupportsTypes with StreamSinkProvider with DataSourceRegister {
  private var read = Option.empty[Table]

  private lazy val ofDriver = ClientJar.ofDriver(this, canRun = BuiltFor.mismatch == null)
    .asInstanceOf[TableProvider with CreatableRelationProvider with StreamSinkProvider]

  /** [[ClientJar]]: what a session has brought does nothing itself. */
  private def isOfDriver = ofDriver eq this

  override def shortName(): String = "supply"

  /** Spark then asks for a table for a write without calling [[inferSchema]]. */
  override def supportsExternalMetadata(): Boolean = true

  /** Of a result, waits until all ranks have sealed it. */
  override def inferSchema(options: CaseInsensitiveStringMap): StructType =
    if (isOfDriver) schemaOf(options) else ofDriver.inferSchema(options)

  private def schemaOf(options: CaseInsensitiveStringMap): StructType = {
    requireBuiltForThisSpark()
    val named = options.asScala.toMap
    val spark = SparkSession.active
    if (named.contains(Calls.Name)) reading(Calls.table(spark, named))(_.schema)
    else reading(new ResultsTable(ResultsOptions.parse(named).load(spark.sparkContext)))(_.schema)
  }

  private def reading[T <: Table](table: T)(schema: T => StructType): StructType = {
    read = Some(table)
    schema(table)
  }

  override def getTable(schema: StructType, partitioning: Array[Transform],
      options: JavaMap[String, String]): Table =
    if (!isOfDriver) ofDriver.getTable(schema, partitioning, options)
    else read.getOrElse {
      if (new CaseInsensitiveStringMap(options).containsKey(ResultsOptions.Name))
        throw new ConfigException(
          "the columns are known, those of a result from its ranks: read it without schema()")
      val named = options.asScala.toMap
      if (!SupplyDataSource.Writes.exists(named.contains(_))) requireSupplied(schema, named)
      new RanksTable(schema)
    }

  /** Types are refused when the rows are written, and the ranks are notified. */
  override def supportsDataType(dataType: DataType): Boolean = true

  /** Spark 3.5 would refuse intervals itself when it plans the write, and nobody would tell the ranks. */
  private def requireSupplied(schema: StructType, options: Map[String, String]): Unit = {
    requireBuiltForThisSpark()
    new WaitingRanks(SparkSession.active.sparkContext, RunOptions.parse(options).ranksToNotify)
      .notifiedOf(RefusedColumns.require(schema))
  }

  override def createRelation(context: SQLContext, mode: SaveMode, options: Map[String, String],
      data: DataFrame): BaseRelation =
    if (!isOfDriver) ofDriver.createRelation(context, mode, options, data)
    else {
      requireBuiltForThisSpark()
      if (options.contains(Results.Release)) Results.release(data)
      else if (options.contains(Calls.Name)) Calls.send(data, options)
      else supply(context, mode, options, data)
      new SuppliedRelation(context, data.schema)
    }

  private def supply(context: SQLContext, mode: SaveMode, options: Map[String, String],
      data: DataFrame): Unit = {
    val (sc, frame) = context.sparkContext -> FrameOptions.parse(options)
    // Of this write: the run's next call has another one.
    val call = Option(frame.hubRun).flatMap(Hubs.find).map(_.call)
    frame.within {
      val reports = SupplyJob.run(sc, frame.run, () => checkWrite(mode, options),
        isWanted = () => !call.exists(_.haveReturned))(frame.source(sc, data, _))
      call.foreach(_.add(frame.frameName, reports))
    }
  }

  private def checkWrite(mode: SaveMode, options: Map[String, String]): Unit = {
    if (mode != SaveMode.Append) throw new ConfigException(
      "ranks are supplied with mode(\"append\"), and no other: there is nothing to replace")
    // Spark adds this option if the caller gives a path.
    if (options.contains("path")) throw new ConfigException(
      "save() takes no path: the ranks are named by mapped-files and named-pipes")
    if (options.contains(DataSourceUtils.PARTITIONING_COLUMNS_KEY))
      refusePartitionBy("the DataFrame")
  }

  /** `ds.writeStream.format("supply")….start()`: supplies each batch as an epoch. */
  override def createSink(context: SQLContext, options: Map[String, String],
      partitionColumns: Seq[String], mode: OutputMode): Sink =
    if (isOfDriver) sinkOf(context, options, partitionColumns, mode)
    else ofDriver.createSink(context, options, partitionColumns, mode)

  private def sinkOf(context: SQLContext, options: Map[String, String],
      partitionColumns: Seq[String], mode: OutputMode): Sink = {
    requireBuiltForThisSpark()
    val (run, columns) = StreamOptions.read(options)
    new WaitingRanks(context.sparkContext, run.ranksToNotify).notifiedOf {
      if (mode != OutputMode.Append)
        throw new ConfigException("a stream is supplied with outputMode(\"append\"), " +
          s"not $mode: a rank keeps what it has had")
      if (partitionColumns.nonEmpty) refusePartitionBy("each batch")
      new StreamSink(context, StreamOptions.settings(options, run), columns.shapes)
    }
  }

  private def refusePartitionBy(what: String): Nothing =
    throw new ConfigException(
      s"partitionBy() means nothing to ranks: rank r gets partitions r, r + ranks, ... of $what")

  private def requireBuiltForThisSpark(): Unit =
    if (BuiltFor.mismatch != null)
      throw new ConfigException(BuiltFor.mismatch + ": " + BuiltFor.fix)
}

/** A method of CreatableRelationProvider, which it does not have in Spark 3.5. */
private[api] trait SupportsTypes {
  def supportsDataType(dataType: DataType): Boolean
}

private final class SuppliedRelation(override val sqlContext: SQLContext,
    override val schema: StructType) extends BaseRelation

private object SupplyDataSource {
  /** The options of writes that supply no ranks. */
  private val Writes = Seq(Results.Release, Calls.Name)
}

/** Supplies the rows of a streaming query: each batch is an epoch of the ranks. */
private final class StreamSink(context: SQLContext, settings: SupplySettings, shapes: Shapes)
    extends Sink {
  private val query = new QueryStream(context, settings)

  StreamingInternals.whenStarted(context.streams, this)(_.query.start(_))

  override def addBatch(batch: Long, data: DataFrame): Unit =
    query.batch(batch)(FrameSource.of(data, shapes))

  override def toString: String = s"supply[${settings.ranks} ranks]"
}

/** The options of a stream: those of [[RunOptions]] that make sense without an end, and of arrays. */
@Command(name = "supply", sortOptions = false)
private[api] final class StreamOptions {
  @Mixin
  var run: RunOptions = _

  @Mixin
  var columns: ColumnOptions = _
}

private[api] object StreamOptions {
  /** Spark's own options, which it passes to every sink. */
  private val OfSpark = Set("checkpointlocation", "queryname")

  private val OfRuns = Map(
    "epochs" -> "each batch is an epoch, and comes once",
    "resident" -> "no batch comes again",
    "resident-folder" -> "no batch comes again",
    "resident-quota" -> "no batch comes again",
    "keep" -> "no batch comes again",
    "resume-positions" -> "a rank of a stream brings its own position",
    "seed" -> "the rows of a batch come in the order in which Spark has them",
    "shuffle" -> "the rows of a batch come in the order in which Spark has them",
    "shuffle-buffer" -> "the rows of a batch come in the order in which Spark has them",
    "exchange-fraction" -> "the ranks' program decides whether they exchange the rows of a batch",
    "global-batch" -> "each rank of a stream has its own partitions",
    "uneven" -> "each row of a batch comes once")

  /** As [[RunOptions.parse]]. */
  def read(options: Map[String, String]): (RunOptions, ColumnOptions) = {
    val stream = new StreamOptions
    RunOptions.read(stream,
      options.filterNot { case (name, _) => OfSpark(name.toLowerCase(Locale.ROOT)) })(
      stream.run)
    stream.run -> stream.columns
  }

  /** Throws a ConfigException if `run`, which was read from `options`, is wrong for a stream. */
  def settings(options: Map[String, String], run: RunOptions): SupplySettings = {
    if (options.contains("path")) throw new ConfigException(
      "start() takes no path: the ranks are named by mapped-files and named-pipes")
    options.keys.find(OfRuns.contains).foreach { name =>
      throw new ConfigException(s"option '$name' is for runs, not for streams: ${OfRuns(name)}")
    }
    val settings = run.settings
    settings.check()
    settings
  }
}

/**
 * The ranks that a DataFrame is written to. Spark asks for a table before it writes. This one
 * cannot be written, so Spark calls createRelation or createSink of [[SupplyDataSource]].
 */
private[api] final class RanksTable(override val schema: StructType) extends Table {
  override def name(): String = "supply"

  override def capabilities(): JavaSet[TableCapability] = Collections.emptySet()
}
