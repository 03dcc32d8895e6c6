package supply.linalg

import java.security.MessageDigest

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import supply.api.{Call, ExtensionCalls}
import supply.core.ConfigException
import supply.run.{Hubs, RunKey}
import supply.task.SupplySettings

/** `spark_supplier.offload.MatrixRanks`: [[Ranks]] and their matrices, by the names that the client gives. */
private[supply] final class RanksCalls extends ExtensionCalls {
  /** Of a matrix in one answer: Spark Connect's client takes messages of at most 128 MiB. */
  private val fetchedBytes = 64 << 20

  /** Those that a client makes beside another call: they do not clear its failure before the client asks for it. */
  private val polls: Map[String, Call => Any] = Map(
    "ranks-cancel" -> (call => ranks(call).ranks.cancel()),
    "ranks-gone" -> (call =>
      call.made.put("gone", NamedRanks.find(call.text("ranks")).forall(_.ranks.areGone))))

  private val noted: Map[String, Call => Any] = Map(
    "ranks-open" -> open,
    "ranks-attach" -> (call => ranks(call).attach(call.words.path("take_over").asBoolean)),
    "ranks-detach" -> (call => ranks(call).leave(_.detach())),
    "ranks-close" -> (call => ranks(call).leave(_.close())),
    "ranks-call" -> callRoutine,
    "matrix-send" -> send,
    "matrix-array" -> sendArray,
    "matrix-sent" -> (call => described(call, call.text("matrix"))),
    "matrix-rows" -> (call =>
      ranks(call).ranks.write(ranks(call).matrix(call.text("matrix"))).foreach {
        case (option, value) => call.made.put(option, value)
      }),
    "matrix-fetch" -> (call =>
      ranks(call).bytes(call.text("matrix"), call.words.path("begin").asInt, fetchedBytes)),
    "matrix-drop" -> (call => ranks(call).matrix(call.text("matrix")).drop()),
    "matrix-forget" -> (call => ranks(call).forget(call.text("matrix"))))

  override val all: Map[String, Call => Any] = polls ++ noted.map { case (name, handle) =>
    name -> ((call: Call) =>
      NamedRanks.find(call.text("ranks")).fold(handle(call))(_.noting(handle(call))))
  }

  override def key(name: String): Option[Array[Byte]] = NamedRanks.find(name).map(_.key)

  override def failure(name: String): Option[Throwable] = NamedRanks.find(name).flatMap(_.failure)

  private def ranks(call: Call): NamedRanks = NamedRanks(call.text("ranks"))

  /** Makes ranks known. texts: what the files say that the driver does not have. */
  private def open(call: Call): Unit = {
    val texts = call.words.path("texts").properties.asScala.map(text =>
      text.getKey -> text.getValue.asText).toMap
    val settings = SupplySettings(call.words.path("count").asInt, call.text("mapped_files"),
      call.text("named_pipes"), hosts = call.optional("hosts"),
      timeout = call.words.path("timeout").asDouble, texts = texts)
    // Ranks that the client has started end with their run. It may have died without a word.
    val (id, key, run) =
      (call.text("ranks"), RunKey.agreed(call.text("public")), call.optional("run"))
    if (NamedRanks.find(id).exists(ranks => !MessageDigest.isEqual(ranks.key, key)))
      throw new ConfigException(s"the ranks $id have another key")
    NamedRanks.add(id, key, new Ranks(call.spark, settings, call.text("results_folder")),
      () => run.forall(Hubs.find(_).isDefined))
    call.made.put("public", RunKey.public)
    ()
  }

  private def callRoutine(call: Call): Unit = {
    val results = ranks(call).ranks.call(call.text("library"), call.text("routine"),
      call.words.path("arguments").elements.asScala.map(value(call, _)).toSeq,
      call.words.path("parameters").properties.asScala.map(each =>
        each.getKey -> value(call, each.getValue)).toMap)
    val list = call.made.putArray("matrices")
    results.foreach { case (_, matrix) => list.add(ranks(call).hold(matrix)) }
  }

  private def value(call: Call, words: JsonNode): Any =
    if (words.isObject) ranks(call).matrix(words.path("matrix").asText)
    else if (words.isTextual) words.asText
    else if (words.isIntegralNumber) words.asLong
    else if (words.isNumber) words.asDouble
    else throw new ConfigException(
      s"a parameter is $words: give a matrix, an integer, a number or a text")

  /** The write of a matrix. */
  private def send(call: Call): Unit = {
    val rows = MatrixRows(call.words.path("features").elements.asScala.map(_.asText).toSeq,
      call.optional("key"), isSparse(call))
    val data = call.data.getOrElse(throw new ConfigException("a matrix is sent by a write"))
    ranks(call).send(call.text("matrix"), _.matrix(data, rows))
  }

  /** The rows of an array are in a file of the driver's machine. */
  private def sendArray(call: Call): Unit = {
    ranks(call).send(call.text("matrix"),
      FromArray.matrix(_, call.text("file"), call.words.path("rows").asLong,
        call.words.path("columns").asInt, isSparse(call)))
    described(call, call.text("matrix"))
  }

  private def isSparse(call: Call) = call.words.path("sparse").asBoolean

  private def described(call: Call, name: String): Unit = {
    call.made.setAll[JsonNode](ranks(call).described(name))
    ()
  }
}
