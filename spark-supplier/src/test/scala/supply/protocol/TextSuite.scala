package supply.protocol

import java.nio.ByteBuffer

import org.scalatest.funsuite.AnyFunSuite

class TextSuite extends AnyFunSuite {
  private val buffer = ByteBuffer.allocate(32)

  private def roundTrip(text: String): String = {
    buffer.put(0, Array.fill[Byte](32)(0x7f))
    Text.write(buffer, 8, 16, text)
    assert(buffer.get(7) == 0x7f && buffer.get(24) == 0x7f, "wrote outside its field")
    Text.read(buffer, 8, 16)
  }

  test("a text is read as it was written") {
    Seq("", "a", "fifteen bytes..", "ünï").foreach(text => assert(roundTrip(text) == text))
  }

  test("a text that is too long is cut between two characters") {
    assert(roundTrip("sixteen bytes...") == "sixteen bytes..")
    assert(roundTrip("fourteen byte ü") == "fourteen byte ")
  }

  test("a text of another process is bounded and has no control characters") {
    buffer.put(8, Array.fill[Byte](16)('x'))
    assert(Text.read(buffer, 8, 16) == "x" * 16)
    buffer.put(8, "a\tb\nc\u001b[2J\u0000".getBytes("UTF-8"))
    assert(Text.read(buffer, 8, 16) == "a b c [2J")
  }
}
