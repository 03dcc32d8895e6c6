package supply.offload

import java.io.ByteArrayOutputStream
import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Arrays

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

import supply.core.ContractException

/**
 * Takes the answer of a rank as its bytes come: lines of JSON, and data after the last one. What a
 * rank sends is checked, and takes no more memory than it has sent. dataMax: the most bytes of data
 * that the command may be answered with. showProgress: gets how much of a routine is done, from 0 to
 * 1; these lines are also heartbeats.
 */
private[offload] final class AnswerReader(dataMax: Long, showProgress: Double => Unit) {
  import AnswerReader._

  private val line = new ByteArrayOutputStream
  private var done = Option.empty[JsonNode]
  private var data = Array.emptyByteArray
  private var dataRead, dataBytes = 0

  /** None: it has not ended yet. */
  var answer = Option.empty[Answer]

  /** Takes what is in the buffer. Throws a ContractException if it is no answer. */
  def take(buffer: ByteBuffer): Unit = while (buffer.hasRemaining && answer.isEmpty) {
    if (done.isDefined) takeData(buffer) else takeByte(buffer.get())
  }

  private def takeByte(byte: Byte): Unit =
    if (byte == '\n') takeLine(parsed())
    else if (line.size < lineMax) line.write(byte)
    else throw new ContractException(s"a line of more than $lineMax bytes")

  private def parsed(): JsonNode =
    // Given bytes, Jackson would guess their encoding.
    try json.readTree(line.toString(UTF_8))
    catch {
      case e: JsonProcessingException =>
        throw new ContractException(s"a line that is not JSON (${e.getOriginalMessage})")
    } finally line.reset()

  private def takeLine(content: JsonNode): Unit =
    if (content.has("progress")) showProgress(content.get("progress").asDouble)
    else if (content.has("error")) {
      val text = content.get("error").asText
      answer =
        Some(if (content.has("ended")) Answer.Lost(text, isOwnText = true) else Answer.Failed(text))
    } else if (content.has("done")) beginData(content.get("done"))
    else throw new ContractException("a line that is neither progress, nor an error, nor done")

  private def beginData(content: JsonNode): Unit = {
    val bytes = content.path("bytes").asLong
    if (bytes < 0 || bytes > dataMax)
      throw new ContractException(s"$bytes bytes of data, where at most $dataMax are expected")
    dataBytes = bytes.toInt
    done = Some(content)
    finishData()
  }

  private def takeData(buffer: ByteBuffer): Unit = {
    val count = math.min(buffer.remaining, dataBytes - dataRead)
    if (dataRead + count > data.length) {
      val room = math.max(dataRead.toLong + count, 2L * data.length)
      data = Arrays.copyOf(data, math.min(room, dataBytes.toLong).toInt)
    }
    buffer.get(data, dataRead, count)
    dataRead += count
    finishData()
  }

  private def finishData(): Unit =
    if (dataRead == dataBytes) answer = Some(Answer.Done(done.get.toString, data))
}

private object AnswerReader {
  private val json = new ObjectMapper
  private val lineMax = 1 << 20
}
