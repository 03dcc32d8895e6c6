package supply.api

import java.util.{Base64, EnumSet, Set => JavaSet}

import scala.util.Try

import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{LocalScan, Scan, ScanBuilder}
import org.apache.spark.sql.types.{BinaryType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import picocli.CommandLine.{Command, Option => Opt}

import supply.core.{ConfigException, NamedOptions}

/**
 * The options of a call to the hub, for a client that has no connection to it: a session of Spark
 * Connect. Each call proves the run's key.
 */
@Command(name = "hub", sortOptions = false)
private[supply] final class HubOptions {
  @Opt(
    names = Array("--hub"),
    paramLabel = "VERB",
    required = true,
    description = Array(
      "open: opens the run, and answers as Hubs.open. poll: answers with pieces for the client. send: sends pieces to peers. close: ends " +
        "the run. Each can be repeated."))
  var verb: String = _

  @Opt(names = Array("--hub-run"), paramLabel = "NAME", required = true,
    description = Array("The run."))
  var run: String = _

  @Opt(names = Array("--hub-key"), paramLabel = "HEX", required = true,
    description = Array("The run's key: 64 hexadecimal digits."))
  var key: String = _

  @Opt(
    names = Array("--after"),
    paramLabel = "N",
    defaultValue = "0",
    description = Array(
      "poll: the number of the last piece that the client has. The hub drops it, and the pieces with smaller numbers."))
  var after: Long = _

  @Opt(names = Array("--millis"), paramLabel = "N", defaultValue = "0",
    description = Array("poll: how long to wait for a piece, at most a minute."))
  var millis: Long = _

  @Opt(names = Array("--number"), paramLabel = "N", defaultValue = "0",
    description = Array(
      "send: 1, 2 and so on. One that the hub has had does nothing."))
  var number: Long = _

  @Opt(names = Array("--peer"), paramLabel = "N",
    description = Array("send: nothing, since each piece has its peer's number."))
  var peer: String = _

  @Opt(names = Array("--bytes"), paramLabel = "BASE64", defaultValue = "",
    description = Array("send: the pieces, as a client's connection has them."))
  var bytes: String = _

  def answer(sc: SparkContext): Array[Byte] = verb match {
    case "open" => Hubs.open(sc, run, keyBytes).getBytes("UTF-8")
    case "poll" => Hubs.run(run, keyBytes).poll(after, millis)
    case "send" =>
      val pieces = Try(Base64.getDecoder.decode(bytes)).getOrElse(
        throw new ConfigException("bytes is no text in base64"))
      Hubs.run(run, keyBytes).send(number, pieces)
      Array.empty[Byte]
    case "close" =>
      Hubs.close(run, keyBytes)
      Array.empty[Byte]
    case other =>
      throw new ConfigException(s"hub is '$other': it must be open, poll, send or close")
  }

  private def keyBytes: Array[Byte] =
    Try(key.grouped(2).map(Integer.parseInt(_, 16).toByte).toArray).getOrElse(
      throw new ConfigException("hub-key has other characters than hexadecimal digits"))
}

private[supply] object HubOptions {
  /** The option that tells this read from others. */
  final val Name = "hub"

  def parse(options: Map[String, String]): HubOptions =
    NamedOptions.parse(new HubOptions, options)
}

/** The answer of the hub, in one row, for which Spark runs no job. */
private[api] final class HubTable(sc: SparkContext, call: HubOptions) extends Table
    with SupportsRead {
  override def name(): String = "supply hub"

  override val schema: StructType = new StructType().add("answer", BinaryType, nullable = false)

  override def capabilities(): JavaSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () =>
    new HubScan(sc, call, schema)
}

private final class HubScan(sc: SparkContext, call: HubOptions, columns: StructType)
    extends Scan with LocalScan {
  private lazy val answer = call.answer(sc)

  override def readSchema(): StructType = columns

  /** Spark asks when it plans the query, and may ask twice. */
  override def rows(): Array[InternalRow] = Array(InternalRow(answer))
}
