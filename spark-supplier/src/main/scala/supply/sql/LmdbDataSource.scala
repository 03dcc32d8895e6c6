package supply.sql

import java.nio.charset.StandardCharsets.ISO_8859_1

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{Row, SQLContext}
import org.apache.spark.sql.sources.{BaseRelation, DataSourceRegister, RelationProvider, TableScan}
import org.apache.spark.sql.types._

import supply.ConfigException
import supply.source.cache.RemoteFile
import supply.source.lmdb.LmdbRDD

/**
 * `spark.read.format("lmdb").load(path)`: an LMDB of Caffe Datums as a DataFrame of seven columns. Option `partitions`: 4 for each
 * core unless it is given.
 */
final class LmdbDataSource extends RelationProvider with DataSourceRegister {

  override def shortName(): String = "lmdb"

  override def createRelation(context: SQLContext, options: Map[String, String]): BaseRelation = {
    val path = options.getOrElse("path", throw new ConfigException("""no path: spark.read.format("lmdb").load("…/train_lmdb")"""))
    if (RemoteFile.isRemote(path)) {
      throw new ConfigException(s"$path: a DataFrame reads an LMDB only where every node sees it: copy it, or let the Supplier fetch it (--lmdb)")
    }
    val partitions = options.get("partitions").map(number).getOrElse(4 * context.sparkContext.defaultParallelism)
    new LmdbRelation(context, LmdbRDD.open(context.sparkContext, RemoteFile.localPath(path), partitions))
  }

  private def number(text: String): Int =
    try { val n = text.toInt; require(n > 0); n }
    catch { case _: IllegalArgumentException => throw new ConfigException(s"partitions is '$text': it must be a number, at least 1") }
}

private final class LmdbRelation(override val sqlContext: SQLContext, rdd: LmdbRDD) extends BaseRelation with TableScan {

  override def schema: StructType = StructType(Seq(
    StructField("key", BinaryType, nullable = false),
    StructField("label", IntegerType, nullable = false),
    StructField("channels", IntegerType, nullable = false),
    StructField("height", IntegerType, nullable = false),
    StructField("width", IntegerType, nullable = false),
    StructField("encoded", BooleanType, nullable = false),
    StructField("data", BinaryType, nullable = false)))

  override def buildScan(): RDD[Row] = rdd.map { case (key, label, channels, height, width, encoded, data) =>
    Row(key.getBytes(ISO_8859_1), label.toInt, channels, height, width, encoded, data)
  }
}
