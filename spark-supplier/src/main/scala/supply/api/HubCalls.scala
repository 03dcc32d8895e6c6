package supply.api

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.{Base64, HexFormat}

import scala.util.Try

import org.apache.spark.SparkContext
import picocli.CommandLine.{Command, Option => Opt}

import supply.core.{ConfigException, NamedOptions}
import supply.linalg.NamedRanks
import supply.run.{Hub, HubRun, RunKey}

/**
 * The options of a call to the hub, for a client that has no connection to it: a session of Spark
 * Connect. Spark shows them to all who read its page or its event log, so no secret is among them.
 */
@Command(name = "hub", sortOptions = false)
private[supply] final class HubCall {
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

  @Opt(
    names = Array("--hub-public"),
    paramLabel = "HEX",
    defaultValue = "",
    description = Array(
      "open: the client's number for the agreement on the run's key: 2 to the power of its secret, modulo the prime of ffdhe2048 (RFC 7919)."))
  var public: String = _

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

  @Opt(names = Array("--bytes"), paramLabel = "BASE64", defaultValue = "",
    description = Array("send: the pieces, as a client's connection has them."))
  var bytes: String = _

  def answer(sc: SparkContext): Array[Byte] = verb match {
    case "open" =>
      s"${Hubs.open(sc, run, RunKey.agreed(public))} ${RunKey.public}".getBytes(UTF_8)
    case "poll" => opened.poll(after, millis)
    case "send" =>
      opened.send(number,
        Try(Base64.getDecoder.decode(bytes)).getOrElse(
          throw new ConfigException("bytes is no text in base64")))
      Array.empty[Byte]
    case "close" =>
      Hubs.close(run)
      Array.empty[Byte]
    case other =>
      throw new ConfigException(s"hub is '$other': it must be open, poll, send or close")
  }

  private def opened: HubRun = Hubs.find(run).getOrElse(throw new ConfigException(
      s"there is no run $run at the hub: it was closed, its client was silent for minutes, or Spark has ended"))
}

private[supply] object HubCall {
  /** The option that tells this read from others. */
  final val Name = "hub"

  /**
   * Of any call that names a run or ranks, but those that open them: HMAC-SHA256 with their key, in
   * hexadecimal, of SHA-256 of the name and of the value of each other option, in the order of the names.
   */
  private final val Proof = "hub-proof"

  def parse(options: Map[String, String]): HubCall =
    NamedOptions.parse(new HubCall, options)

  /** The options without the proof. Throws a ConfigException if they name an open run, or ranks, whose key they do not prove. */
  def proven(options: Map[String, String]): Map[String, String] = {
    val others = options - Proof
    val opens = Seq(Name, RanksCall.Name).flatMap(options.get).contains("open")
    for {
      name <- Seq("hub-run", "run", "ranks-id").flatMap(options.get) if !opens
      key <- Hubs.find(name).map(_.key).orElse(NamedRanks.find(name).map(_.key))
    } {
      val said =
        others.toSeq.sorted.flatMap { case (option, value) => Seq(option, value) }.map(text =>
          MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8)))
      val expected = HexFormat.of().formatHex(Hub.proof(key, said: _*))
      val proof = options.getOrElse(Proof, "")
      if (!MessageDigest.isEqual(proof.getBytes(UTF_8), expected.getBytes(UTF_8)))
        throw new ConfigException(s"$Proof proves no key of $name")
    }
    others
  }
}
