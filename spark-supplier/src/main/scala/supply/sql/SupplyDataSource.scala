package supply.sql

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, SaveMode, SQLContext}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.sources.{BaseRelation, CreatableRelationProvider, DataSourceRegister}
import org.apache.spark.sql.types.StructType
import org.apache.spark.supply.SparkInternals

import supply.{BuiltFor, ConfigException, RunOptions, SourceException, SupplyJob}

/**
 * `df.write.format("supply").mode("append").option("ranks", 4)….save()`: supplies the rows of a DataFrame to MPI ranks. `save()` returns when
 * every rank has all its data, and throws a SupplyException with the first cause otherwise. The options are those of [[RunOptions]].
 */
final class SupplyDataSource extends CreatableRelationProvider with DataSourceRegister {

  override def shortName(): String = "supply"

  override def createRelation(context: SQLContext, mode: SaveMode, options: Map[String, String], data: DataFrame): BaseRelation = {
    if (BuiltFor.mismatch != null) throw new ConfigException(BuiltFor.mismatch + ": " + BuiltFor.fix)
    if (mode != SaveMode.Append) throw new ConfigException("ranks are supplied with mode(\"append\"), and no other: there is nothing to replace")
    // Spark's own, where the caller gives a path.
    if (options.contains("path")) throw new ConfigException("save() takes no path: the ranks are named by mapped-files and named-pipes")
    SupplyJob.run(context.sparkContext, RunOptions.parse(options).settings)(source(data))
    new SuppliedRelation(context, data.schema)
  }

  private def source(data: DataFrame): RowSource = {
    // Computes what lies ahead of a shuffle. Columns that can not be supplied are refused before.
    lazy val rows = data.queryExecution.toRdd
    val columns = RowColumn.of(data.schema, column => listLength(rows, data.schema(column).name, column))
    if (SparkInternals.isIndeterminate(rows)) {
      throw new SourceException("Spark may compute other rows each time it computes this DataFrame again (a repartition of rows in no " +
        "certain order, for one): write it to files first, and read these")
    }
    new RowSource(rows, columns, SparkInternals.isOrdered(rows))
  }

  private def listLength(rows: RDD[InternalRow], name: String, column: Int): Int =
    rows.filter(!_.isNullAt(column)).map(_.getArray(column).numElements()).take(1).headOption.filter(_ > 0).getOrElse(
      throw new SourceException(s"column '$name' has no array with a number in it, so its length is not known: drop the column"))
}

private final class SuppliedRelation(override val sqlContext: SQLContext, override val schema: StructType) extends BaseRelation
