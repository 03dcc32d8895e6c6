package supply.protocol

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8

/** UTF-8 text of at most `bytes` bytes in a shared buffer, with the zero byte at the end. */
private[supply] object Text {
  /** Cuts longer text between two characters. */
  def write(to: ByteBuffer, at: Int, bytes: Int, text: String): Unit = {
    var encoded = text.replace('\u0000', ' ').getBytes(UTF_8)
    if (encoded.length >= bytes) {
      var end = bytes - 1
      while ((encoded(end) & 0xc0) == 0x80) end -= 1
      encoded = encoded.take(end)
    }
    to.put(at, encoded)
    to.put(at + encoded.length, new Array[Byte](bytes - encoded.length))
    ()
  }

  /** Reads up to the zero byte or the end; another process's control characters become blanks. */
  def read(from: ByteBuffer, at: Int, bytes: Int): String =
    exactly(from, at, bytes).map(c => if (c.isControl) ' ' else c)

  /** Reads what [[write]] has written. */
  def exactly(from: ByteBuffer, at: Int, bytes: Int): String = {
    val copy = new Array[Byte](bytes)
    from.get(at, copy)
    val end = copy.indexOf(0.toByte)
    new String(copy, 0, if (end < 0) bytes else end, UTF_8)
  }
}
