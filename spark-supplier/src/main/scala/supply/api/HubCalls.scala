package supply.api

import java.nio.charset.StandardCharsets.UTF_8
import java.util.{Base64, HexFormat}

import scala.util.Try

import supply.core.ConfigException
import supply.net.Listener
import supply.run.{HubRun, Hubs, RunKey}
import supply.task.Served

/** The hub, for the client of a run: docs/design/hub.md. */
private[api] object HubCalls {
  val all: Map[String, Call => Any] = Map(
    "hub-open" -> open,
    "hub-poll" -> (call =>
      opened(call).poll(call.words.path("after").asLong, call.words.path("millis").asLong)),
    "hub-send" -> send,
    "hub-serve" -> serve,
    "hub-close" -> (call => Hubs.close(call.text("run"))))

  private def open(call: Call): Unit = {
    putAddress(call, RunKey.agreed(call.text("public")))
    call.made.put("public", RunKey.public)
    ()
  }

  private def putAddress(call: Call, key: Array[Byte]): Unit =
    Seq("host", "port", "here").zip(Hubs.open(call.sc, call.text("run"), key).split(" ")).foreach {
      case (name, word) => call.made.put(name, word)
    }

  /** Ranks elsewhere know the run by that name and key, which is masked: Spark shows arguments. */
  private def serve(call: Call): Unit = {
    val (run, name) = opened(call) -> call.text("name")
    val mask = Listener.proof(run.key, s"serve $name".getBytes(UTF_8))
    val key = Try(HexFormat.of().parseHex(call.text("key"))).toOption.filter(
      _.length == mask.length).getOrElse(throw new ConfigException("key is no hexadecimal key"))
    if (!Served.isName(name)) throw new ConfigException(
      s"name is '$name': it must be 1 to 64 of the characters A-Z a-z 0-9 _ -")
    Hubs.serve(run, name, key.zip(mask).map { case (one, other) => (one ^ other).toByte })
    putAddress(call, run.key)
  }

  private def send(call: Call): Unit = opened(call).send(call.words.path("number").asLong,
    Try(Base64.getDecoder.decode(call.text("bytes"))).getOrElse(
      throw new ConfigException("bytes is no text in base64")))

  def opened(call: Call): HubRun = {
    val run = call.text("run")
    Hubs.find(run).getOrElse(throw new ConfigException(
        s"there is no run $run at the hub: it was closed, its client was silent for minutes, or Spark has ended"))
  }
}
