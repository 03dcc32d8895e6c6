package supply.api

import java.util.Base64

import scala.util.Try

import supply.core.ConfigException
import supply.run.{HubRun, RunKey}

/** The hub, for the client of a run: docs/design/hub.md. */
private[api] object HubCalls {
  val all: Map[String, Call => Any] = Map(
    "hub-open" -> open,
    "hub-poll" -> (call =>
      opened(call).poll(call.words.path("after").asLong, call.words.path("millis").asLong)),
    "hub-send" -> send,
    "hub-close" -> (call => Hubs.close(call.text("run"))))

  private def open(call: Call): Unit = {
    val key = RunKey.agreed(call.text("public"))
    val words = Hubs.open(call.sc, call.text("run"), key).split(" ")
    Seq("host", "port", "here").zip(words).foreach { case (name, word) =>
      call.made.put(name, word)
    }
    call.made.put("public", RunKey.public)
    ()
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
