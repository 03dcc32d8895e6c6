package supply.api

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import scala.jdk.CollectionConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.{DataFrame, SparkSession}
import picocli.CommandLine.{Command, Option => Opt}

import supply.core.{ConfigException, NamedOptions}
import supply.linalg.{Matrix, MatrixRows, NamedRanks, Ranks}
import supply.run.RunKey
import supply.task.SupplySettings

/**
 * `spark_supplier.offload.Ranks` of a session of Spark Connect: each call is a read of the data source, and a
 * matrix is sent by a DataFrame's writer. The ranks and their matrices have names that the client gives.
 */
@Command(name = "ranks", sortOptions = false)
private[supply] final class RanksCall {
  @Opt(
    names = Array("--ranks-call"),
    paramLabel = "NAME",
    required = true,
    description = Array(
      "open: makes ranks known. attach, call, cancel, progress, detach, close: as of Ranks. fetch: bytes of a matrix. rows: the options of a " +
        "read of its rows. drop, forget: of a matrix. matrix: of a writer, sends one. sent: what it is. gone: whether the ranks have ended."))
  var name: String = _

  @Opt(names = Array("--ranks-id"), paramLabel = "NAME", required = true,
    description = Array("The ranks."))
  var id: String = _

  @Opt(names = Array("--json"), paramLabel = "JSON", defaultValue = "{}",
    description = Array("The arguments of the call."))
  var json: String = _

  private def arguments: JsonNode = Try(RanksCall.mapper.readTree(json)).getOrElse(
    throw new ConfigException(s"json is no JSON: $json"))

  private def opened: NamedRanks = NamedRanks(id)

  private def matrix(words: JsonNode): Matrix = opened.matrix(words.asText)

  def answer(spark: SparkSession): Array[Byte] =
    if (RanksCall.Polls(name)) answered(spark) else noting(answered(spark))

  private def noting[A](call: => A): A = NamedRanks.find(id).fold(call)(_.noting(call))

  private def answered(spark: SparkSession): Array[Byte] = {
    val words = arguments
    val made = RanksCall.mapper.createObjectNode()
    name match {
      case "open" => open(spark, words); made.put("public", RunKey.public)
      case "attach" => opened.attach(words.path("takeOver").asBoolean)
      case "call" =>
        val results = opened.ranks.call(words.path("library").asText,
          words.path("routine").asText, words.path("arguments").elements.asScala.map(value).toSeq,
          words.path("parameters").properties.asScala.map(each =>
            each.getKey -> value(each.getValue)).toMap)
        val list = made.putArray("matrices")
        results.foreach { case (_, matrix) =>
          val name = s"result-${matrix.handle}"
          opened.matrices(name) = matrix
          list.add(described(name))
        }
      case "sent" => made.set[JsonNode]("matrix", described(words.path("matrix").asText))
      case "rows" => opened.ranks.write(matrix(words.path("matrix"))).foreach {
          case (option, value) => made.put(option, value)
        }
      case "drop" => matrix(words.path("matrix")).drop()
      case "forget" => opened.matrices.remove(words.path("matrix").asText).foreach(_.forget())
      case "cancel" => opened.ranks.cancel()
      case "progress" => made.put("done", opened.ranks.progress)
      case "gone" => made.put("gone", NamedRanks.find(id).forall(_.ranks.areGone))
      case "detach" => opened.leave(_.detach())
      case "close" => opened.leave(_.close())
      case "fetch" =>
      case other =>
        throw new ConfigException(s"ranks-call is '$other', and this server has no such call")
    }
    if (name == "fetch")
      opened.bytes(matrix(words.path("matrix")), words.path("begin").asInt, RanksCall.FetchedBytes)
    else made.toString.getBytes(UTF_8)
  }

  /** The write of a matrix. */
  def send(data: DataFrame): Unit = noting {
    val words = arguments
    val features = words.path("features").elements.asScala.map(_.asText).toSeq
    val rows = MatrixRows(features, Option(words.get("key")).filterNot(_.isNull).map(_.asText),
      words.path("sparse").asBoolean)
    opened.send(words.path("matrix").asText, _.matrix(data, rows))
  }

  private def open(spark: SparkSession, words: JsonNode): Unit = {
    def text(name: String) = Option(words.get(name)).filterNot(_.isNull).map(_.asText)
    val texts =
      Seq("mapped-files", "named-pipes", "hosts").flatMap(name => text(name).map(name -> _))
    val settings = SupplySettings(words.path("ranks").asInt, "mapped-files", "named-pipes",
      hosts = text("hosts").map(_ => "hosts"), timeout = words.path("timeout").asDouble,
      texts = texts.toMap)
    // Ranks that the client has started end with their run. It may have died without a word.
    val (run, key) = text("run") -> RunKey.agreed(text("public").getOrElse(""))
    if (NamedRanks.find(id).exists(ranks => !MessageDigest.isEqual(ranks.key, key)))
      throw new ConfigException(s"the ranks $id have another key")
    NamedRanks.add(id, key, new Ranks(spark, settings, words.path("resultsFolder").asText),
      () => run.forall(Hubs.find(_).isDefined))
  }

  private def described(name: String): JsonNode = {
    val matrix = opened.matrix(name)
    RanksCall.mapper.createObjectNode().put("matrix", name).put("rows", matrix.rows)
      .put("columns", matrix.columns).put("array", matrix.isArray)
  }

  private def value(words: JsonNode): Any =
    if (words.isObject) matrix(words.path("matrix"))
    else if (words.isTextual) words.asText
    else if (words.isIntegralNumber) words.asLong
    else if (words.isNumber) words.asDouble
    else throw new ConfigException(
      s"a parameter is $words: give a matrix, an integer, a number or a text")
}

private[supply] object RanksCall {
  /** The option that tells this read or write from others. */
  final val Name = "ranks-call"

  /** Made beside another call: they would clear its failure before the client asks for it. */
  private val Polls = Set("progress", "cancel", "gone")

  /** Of a matrix in one answer: Spark Connect's client takes messages of at most 128 MiB. */
  private final val FetchedBytes = 64 << 20

  private val mapper = new ObjectMapper

  def parse(options: Map[String, String]): RanksCall =
    NamedOptions.parse(new RanksCall, options)
}
