package supply.api

import scala.jdk.CollectionConverters._

import supply.core.ConfigException
import supply.run.{CheckpointFolder, CheckpointFolders}

/** The checkpoints of runs, in folders that this JVM reaches. */
private[api] object CheckpointCalls {
  val all: Map[String, Call => Any] = Map(
    "checkpoints-latest" -> latest,
    "checkpoints-begin" -> begin,
    "checkpoints-complete" -> complete)

  private def folder(call: Call, name: String) = call.optional(name).map(
    CheckpointFolder.of(_, call.sc.hadoopConfiguration, isWritten = name == "to"))

  /** The newest complete one in a folder, of those after a number. */
  private def latest(call: Call): Unit = {
    val (found, torn) = folder(call, "folder").get.latest(call.words.path("after").asLong)
    torn.foldLeft(call.made.putArray("torn"))(_.add(_))
    found.foreach { checkpoint =>
      call.made.put("number", checkpoint.number).put("text", checkpoint.text)
      checkpoint.ranks.foldLeft(call.made.putArray("ranks"))(_.add(_))
    }
  }

  /** Ranks of the run may save to one folder, and load from one. */
  private def begin(call: Call): Unit = {
    val folders = CheckpointFolders(folder(call, "to"), folder(call, "from"))
    HubCalls.opened(call).checkpoints = folders
    folders.to.foreach(to => call.made.put("next", to.next()))
  }

  private def complete(call: Call): Unit = {
    val begun = HubCalls.opened(call).checkpoints.to.getOrElse(
      throw new ConfigException(s"the run ${call.text("run")} has no folder of checkpoints"))
    begun.complete(call.words.path("number").asLong,
      call.words.path("holders").asScala.map(_.asInt).toSeq, call.text("text"),
      call.words.path("keep").asInt)
  }
}
