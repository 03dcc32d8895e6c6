package supply.datasource

import org.apache.spark.sql.{DataFrame, SaveMode, SQLContext}
import org.apache.spark.sql.execution.datasources.DataSourceUtils
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.sources.{BaseRelation, CreatableRelationProvider, DataSourceRegister, StreamSinkProvider}
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.sql.types.StructType

import supply.core.{BuiltFor, ConfigException}
import supply.driver.{RunOptions, SupplyJob}
import supply.sources.rows.{ListLengths, RowSource}

/**
 * `df.write.format("supply").mode("append").option("ranks", 4)….save()`: supplies the rows of a
 * DataFrame to MPI ranks. `save()` returns when every rank has all its data. If the run fails, it
 * throws a SupplyException with the first cause. [[RunOptions]] has the options.
 */
final class SupplyDataSource extends CreatableRelationProvider with StreamSinkProvider
    with DataSourceRegister {
  override def shortName(): String = "supply"

  override def createRelation(context: SQLContext, mode: SaveMode, options: Map[String, String],
      data: DataFrame): BaseRelation = {
    requireBuiltForThisSpark()
    if (mode != SaveMode.Append) throw new ConfigException(
      "ranks are supplied with mode(\"append\"), and no other: there is nothing to replace")
    // Spark adds this option if the caller gives a path.
    if (options.contains("path")) throw new ConfigException(
      "save() takes no path: the ranks are named by mapped-files and named-pipes")
    if (options.contains(DataSourceUtils.PARTITIONING_COLUMNS_KEY))
      refusePartitionBy("the DataFrame")
    SupplyJob.run(context.sparkContext, RunOptions.parse(options).settings)(RowSource.of(data,
        new ListLengths))
    new SuppliedRelation(context, data.schema)
  }

  /** `ds.writeStream.format("supply")….start()`: supplies each batch as an epoch. */
  override def createSink(context: SQLContext, options: Map[String, String],
      partitionColumns: Seq[String], mode: OutputMode): Sink = {
    requireBuiltForThisSpark()
    if (mode != OutputMode.Append)
      throw new ConfigException("a stream is supplied with outputMode(\"append\"), " +
        s"not $mode: a rank keeps what it has had")
    if (partitionColumns.nonEmpty) refusePartitionBy("each batch")
    new StreamSink(context, StreamOptions.parse(options))
  }

  private def refusePartitionBy(what: String): Nothing =
    throw new ConfigException(
      s"partitionBy() means nothing to ranks: rank r gets partitions r, r + ranks, ... of $what")

  private def requireBuiltForThisSpark(): Unit =
    if (BuiltFor.mismatch != null)
      throw new ConfigException(BuiltFor.mismatch + ": " + BuiltFor.fix)
}

private final class SuppliedRelation(override val sqlContext: SQLContext,
    override val schema: StructType) extends BaseRelation
