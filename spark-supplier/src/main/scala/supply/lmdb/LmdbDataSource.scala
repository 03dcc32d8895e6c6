package supply.lmdb

import java.nio.ByteBuffer

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow
import org.apache.spark.sql.sources.{BaseRelation, DataSourceRegister, RelationProvider, TableScan}
import org.apache.spark.sql.types._
import org.apache.spark.sql.{Row, SQLContext}
import org.apache.spark.supply.ClientJar
import picocli.CommandLine.{Command, Mixin, Option => Opt}

import supply.core.{BuiltFor, ConfigException, Deadline, NamedOptions}
import supply.plan.Hostfile
import supply.rows.InPlaceRelation
import supply.source.{ElementWriter, Source}

/**
 * `spark.read.format("lmdb").load(path)`: an LMDB of Caffe Datums as a DataFrame of seven columns.
 * An LMDB in HDFS is copied to each node that computes a partition of it. [[LmdbOptions]] has the
 * options.
 */
final class LmdbDataSource extends RelationProvider with DataSourceRegister {
  override def shortName(): String = "lmdb"

  override def createRelation(
      context: SQLContext, parameters: Map[String, String]): BaseRelation = {
    // ClientJar: what a session has brought does nothing itself.
    val ofDriver = ClientJar.ofDriver(this, canRun = BuiltFor.mismatch == null)
    if (ofDriver eq this) relation(context, parameters)
    else ofDriver.asInstanceOf[RelationProvider].createRelation(context, parameters)
  }

  private def relation(context: SQLContext, parameters: Map[String, String]): BaseRelation = {
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
    override val inPlace: Boolean) extends BaseRelation with TableScan with InPlaceRelation {
  override def schema: StructType = DatumRow.Schema

  override def source(columns: IndexedSeq[Int]): Source =
    new LmdbSource(rdd, inPlace = true, columns)

  override def noteCopied(columns: IndexedSeq[Int]): Unit =
    if (columns.contains(Datum.Data)) rdd.noteCopied("option(\"inPlace\", true) of its reader")

  /** The rows are Spark's internal ones, as its own file sources return them. */
  override def needConversion: Boolean = false

  override def buildScan(): RDD[Row] = rdd.asInstanceOf[RDD[Row]]
}

/** Takes the columns of a Datum from a cursor as an internal row, which each element uses again. */
private final class DatumRow extends ElementWriter {
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

/** The options of `spark.read.format("lmdb")`. */
@Command(name = "lmdb", sortOptions = false)
private[supply] final class LmdbOptions {
  @Opt(
    names = Array("--path"),
    paramLabel = "PATH",
    description = Array(
      "LMDB of Caffe Datums: a directory with a data.mdb, or the data file itself; in HDFS, or where every node sees it."))
  var path: String = _

  @Opt(names = Array("--partitions"), paramLabel = "N",
    description = Array("Partitions of the DataFrame. Default: 4 for each core."))
  var partitions: Integer = _

  @Opt(
    names = Array("--timeout"),
    paramLabel = "SECONDS",
    defaultValue = "120",
    description = Array(
      "How long an executor waits while another one of its node fetches the LMDB and gets nothing. " +
        "Default: ${DEFAULT-VALUE}."))
  var timeout: Double = _

  @Opt(
    names = Array("--inPlace", "--inplace", "--in-place"),
    paramLabel = "true",
    description = Array(
      "The ranks read the data in the LMDB itself (--in-place). The DataFrame can only be supplied as it is read, or some of its columns."))
  var inPlace: Boolean = _

  @Opt(
    names = Array("--skipKeys", "--skipkeys", "--skip-keys"),
    paramLabel = "KEY,…",
    split = ",",
    description =
      Array("Keys to leave out, because their values are no Datums: for example num-samples."))
  var skipKeys: Array[String] = Array.empty

  def keysToSkip: Seq[String] = skipKeys.toSeq

  @Mixin
  val cache: LmdbCacheOptions = new LmdbCacheOptions
}

private[supply] object LmdbOptions {
  def parse(options: Map[String, String]): LmdbOptions = {
    val parsed = NamedOptions.parse(new LmdbOptions, options)
    if (parsed.path == null)
      throw new ConfigException(
        """no path, or several: load one LMDB, spark.read.format("lmdb").load("…/train_lmdb"), and union() the frames of several""")
    if (parsed.partitions != null && parsed.partitions < 1)
      throw new ConfigException(s"partitions is ${parsed.partitions}: it must be at least 1")
    Deadline.require("timeout", parsed.timeout)
    parsed
  }
}
