package supply.sql

import org.apache.spark.sql.{DataFrame, SaveMode, SQLContext}
import org.apache.spark.sql.functions.{col, size}
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
    val columns = RowColumn.of(data.schema, listLength(data, _))
    val rows = data.queryExecution.toRdd
    if (SparkInternals.isIndeterminate(rows)) {
      throw new SourceException("Spark may compute other rows each time it computes this DataFrame again (a repartition of rows in no " +
        "certain order, for one): write it to files first, and read these")
    }
    new RowSource(rows, columns, SparkInternals.isOrdered(rows))
  }

  private def listLength(data: DataFrame, column: String): Int = {
    val name = "`" + column.replace("`", "``") + "`"
    data.select(size(col(name))).where(col(name).isNotNull).head(1).headOption.map(_.getInt(0)).filter(_ > 0).getOrElse(
      throw new SourceException(s"column '$column' has no array with a number in it, so its length is not known: drop the column"))
  }
}

private final class SuppliedRelation(override val sqlContext: SQLContext, override val schema: StructType) extends BaseRelation
