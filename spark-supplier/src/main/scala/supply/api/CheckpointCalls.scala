package supply.api

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.SparkContext

import supply.core.ConfigException
import supply.run.{CheckpointFolder, CheckpointFolders}

/** The checkpoints of runs, in folders that this JVM reaches: a call of [[SessionCall]]. */
private[supply] object CheckpointCalls {
  private val json = new ObjectMapper

  /** verb and what is in the text: latest: folder, after. begin: to and from, folders or null. complete: number, ranks, text, keep. */
  def answer(
      sc: SparkContext, verb: String, run: String, text: String, answer: ObjectNode): Unit = {
    val asked = json.readTree(text)
    def folder(name: String) = Option(asked.get(name)).filter(!_.isNull)
      .map(found =>
        CheckpointFolder.of(found.asText, sc.hadoopConfiguration, isWritten = name == "to"))
    verb match {
      case "latest" =>
        val (found, torn) = folder("folder").get.latest(asked.get("after").asLong)
        torn.foldLeft(answer.putArray("torn"))(_.add(_))
        found.foreach { checkpoint =>
          answer.put("number", checkpoint.number).put("text", checkpoint.text)
          checkpoint.ranks.foldLeft(answer.putArray("ranks"))(_.add(_))
        }
      case "begin" =>
        val folders = CheckpointFolders(folder("to"), folder("from"))
        open(run).checkpoints = folders
        folders.to.foreach(to => answer.put("next", to.next()))
      case "complete" =>
        val begun = open(run).checkpoints.to.getOrElse(
          throw new ConfigException(s"the run $run has no folder of checkpoints"))
        begun.complete(asked.get("number").asLong, asked.get("ranks").asScala.map(_.asInt).toSeq,
          asked.get("text").asText, asked.get("keep").asInt)
      case other =>
        throw new ConfigException(s"checkpoints is '$other': it must be latest, begin or complete")
    }
    ()
  }

  private def open(run: String) = Hubs.find(run).getOrElse(
    throw new ConfigException(s"there is no run $run at the hub"))
}
