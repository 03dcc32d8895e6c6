package supply.linalg

import java.nio.ByteBuffer

import supply.testing.Fuzzed

/** What a rank sends as its answer, in pieces as a socket gives them. */
object AnswerFuzzer {
  private val dataMax = 4096L

  def fuzzerTestOneInput(input: Array[Byte]): Unit = Fuzzed.refusedOrRead {
    val reader = new AnswerReader(dataMax, _ => ())
    val piece = 1 + input.headOption.fold(0)(_ & 0x7f)
    input.drop(1).grouped(piece).foreach(bytes => reader.take(ByteBuffer.wrap(bytes)))
    reader.answer.foreach {
      case Answer.Done(_, data) if data.length > dataMax =>
        throw new AssertionError(s"${data.length} bytes of data")
      case _ => ()
    }
  }
}
