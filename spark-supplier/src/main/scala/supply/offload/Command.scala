package supply.offload

import java.util.UUID

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode

/**
 * One command to all ranks of a supply-server: a line of JSON. A retried task sends the same.
 * dataMax: the most bytes of data that a rank may answer with.
 */
private[offload] final case class Command(line: String, dataMax: Long)

private[offload] object Command {
  private val json = new ObjectMapper

  def of(name: String, dataMax: Long)(fill: ObjectNode => Unit): Command = {
    val command = json.createObjectNode()
    command.put("command", name).put("id", UUID.randomUUID().toString)
    fill(command)
    Command(json.writeValueAsString(command), dataMax)
  }
}

/** What one rank answered. */
private[offload] sealed trait Answer extends Serializable

private[offload] object Answer {
  /** line: JSON, what follows "done". data: the bytes that followed. */
  final case class Done(line: String, data: Array[Byte]) extends Answer

  /** text: why the rank, or all of them, could not do it. */
  final case class Failed(text: String) extends Answer

  /** The rank is gone, or does not answer. isOwnText: its last words, not what its end looks like. */
  final case class Lost(text: String, isOwnText: Boolean = false, isTimeout: Boolean = false)
      extends Answer
}
