package supply.datasource

import java.nio.ByteBuffer

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{Row, SQLContext}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow
import org.apache.spark.sql.sources.{BaseRelation, DataSourceRegister, RelationProvider, TableScan}
import org.apache.spark.sql.types._

import supply.driver.LmdbOpener
import supply.plan.Hostfile
import supply.sources.{Datum, DatumWriter}
import supply.sources.lmdb.LmdbRDD

/**
 * `spark.read.format("lmdb").load(path)`: an LMDB of Caffe Datums as a DataFrame of seven columns.
 * An LMDB in HDFS is copied to each node that computes a partition of it. [[LmdbOptions]] has the
 * options.
 */
final class LmdbDataSource extends RelationProvider with DataSourceRegister {
  override def shortName(): String = "lmdb"

  override def createRelation(
      context: SQLContext, parameters: Map[String, String]): BaseRelation = {
    val options = LmdbOptions.parse(parameters)
    val sc = context.sparkContext
    val partitions = Option(options.partitions).map(_.toInt).getOrElse(4 * sc.defaultParallelism)
    new LmdbRelation(
      context,
      // It is not known yet which executors will read it: one of them plans the partitions.
      LmdbOpener.open(sc, options.path, partitions, options.keysToSkip, Hostfile.oneNode(1),
        options.cache, options.timeout),
      options.inPlace)
  }
}

/** `inPlace`: ranks read the data in the LMDB itself. Spark's own rows have copies all the same. */
private final class LmdbRelation(override val sqlContext: SQLContext, val rdd: LmdbRDD,
    val inPlace: Boolean) extends BaseRelation with TableScan {
  override def schema: StructType = DatumRow.Schema

  /** The rows are Spark's internal ones, as its own file sources return them. */
  override def needConversion: Boolean = false

  override def buildScan(): RDD[Row] = rdd.mapCursors { cursor =>
    val row = new DatumRow
    cursor.map { element =>
      element.write(row)
      row.values
    }
  }.asInstanceOf[RDD[Row]]
}

/** Takes the columns of a Datum from a cursor as an internal row, which each element uses again. */
private final class DatumRow extends DatumWriter {
  val values: InternalRow = new SpecificInternalRow(DatumRow.Schema)

  override def putInt(column: Int, value: Int): Unit = values.setInt(column, value)

  override def putBoolean(column: Int, value: Boolean): Unit = values.setBoolean(column, value)

  override def reserve(column: Int, bytes: Int): ByteBuffer = {
    val space = ByteBuffer.allocate(bytes)
    values.update(column, space.array)
    space
  }
}

private object DatumRow {
  /** A column of a Datum has the same index in both. */
  val Schema: StructType = StructType(Datum.schema.columns.map { column =>
    StructField(column.name,
      column.format match {
        case "z" => BinaryType
        case "i" => IntegerType
        case "b" => BooleanType
      },
      nullable = false)
  })
}
