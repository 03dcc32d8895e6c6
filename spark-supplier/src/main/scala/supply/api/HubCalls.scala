package supply.api

import java.math.BigInteger
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.{Base64, HexFormat}

import scala.util.Try

import org.apache.spark.SparkContext
import picocli.CommandLine.{Command, Option => Opt}

import supply.core.{ConfigException, NamedOptions}
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
    names = Array("--hub-proof"),
    paramLabel = "HEX",
    defaultValue = "",
    description = Array(
      "poll, send, close: HMAC-SHA256, with the run's key, of the verb, the run, the value of after (poll), number (send) or 0 (close), and " +
        "the value of bytes, with newlines between them."))
  var proof: String = _

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
      val theirs = Try(new BigInteger(public, 16)).getOrElse(
        throw new ConfigException("hub-public is no hexadecimal number"))
      val key = RunKey.agreed(theirs)
      s"${Hubs.open(sc, run, key)} ${RunKey.public}".getBytes(UTF_8)
    case "poll" => proven(after).poll(after, millis)
    case "send" =>
      val run = proven(number)
      run.send(number,
        Try(Base64.getDecoder.decode(bytes)).getOrElse(
          throw new ConfigException("bytes is no text in base64")))
      Array.empty[Byte]
    case "close" =>
      if (Hubs.find(run).isDefined) Hubs.close(proven(0).name)
      Array.empty[Byte]
    case other =>
      throw new ConfigException(s"hub is '$other': it must be open, poll, send or close")
  }

  /** The run, if this call proves its key. counter: what makes this call another one than the last. */
  private def proven(counter: Long): HubRun = {
    val found = Hubs.find(run).getOrElse(throw new ConfigException(
        s"there is no run $run at the hub: it was closed, its client was silent for minutes, or Spark has ended"))
    val said = s"$verb\n$run\n$counter\n$bytes"
    val expected = HexFormat.of().formatHex(Hub.proof(found.key, said.getBytes(UTF_8)))
    if (MessageDigest.isEqual(proof.getBytes(UTF_8), expected.getBytes(UTF_8))) found
    else throw new ConfigException(s"hub-proof proves no key of the run $run")
  }
}

private[supply] object HubCall {
  /** The option that tells this read from others. */
  final val Name = "hub"

  def parse(options: Map[String, String]): HubCall =
    NamedOptions.parse(new HubCall, options)
}
