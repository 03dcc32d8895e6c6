package supply.datasource

import java.nio.charset.StandardCharsets.ISO_8859_1

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{Row, SQLContext}
import org.apache.spark.sql.sources.{BaseRelation, DataSourceRegister, RelationProvider, TableScan}
import org.apache.spark.sql.types._

import supply.driver.LmdbOpener
import supply.plan.Hostfile
import supply.sources.lmdb.LmdbRDD

/**
 * `spark.read.format("lmdb").load(path)`: an LMDB of Caffe Datums as a DataFrame of seven columns.
 * One in HDFS is copied to each node that computes a partition of it. The options are those of
 * [[LmdbOptions]].
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
      // Which executors will read it is not known yet: one of them says what is in it.
      LmdbOpener.open(sc, options.path, partitions, Hostfile.oneNode(1),
        options.cache.settings(options.timeout))
    )
  }
}

private final class LmdbRelation(
    override val sqlContext: SQLContext, rdd: LmdbRDD) extends BaseRelation with TableScan {

  override def schema: StructType = StructType(Seq(
      StructField("key", BinaryType, nullable = false),
      StructField("label", IntegerType, nullable = false),
      StructField("channels", IntegerType, nullable = false),
      StructField("height", IntegerType, nullable = false),
      StructField("width", IntegerType, nullable = false),
      StructField("encoded", BooleanType, nullable = false),
      StructField("data", BinaryType, nullable = false)
    ))

  override def buildScan(): RDD[Row] =
    rdd.map { case (key, label, channels, height, width, encoded, data) =>
      Row(key.getBytes(ISO_8859_1), label.toInt, channels, height, width, encoded, data)
    }
}
