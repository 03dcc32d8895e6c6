package supply.lmdb

import java.nio.ByteBuffer

import org.fusesource.lmdbjni.DirectBuffer

/** A value of an LMDB, which may hold anything: a Datum whose data lies within it, or none. */
object DatumFuzzer {
  private val reader = new DatumReader

  def fuzzerTestOneInput(input: Array[Byte]): Unit = {
    val value = ByteBuffer.allocateDirect(math.max(1, input.length))
    value.put(input)
    try {
      reader.read(new DirectBuffer(value), input.length)
      require(reader.dataBytes >= 0 && reader.dataBytes <= input.length, "data beyond the value")
      require(reader.dataOffset <= input.length - reader.dataBytes, "an offset beyond the value")
      reader.copyData(ByteBuffer.allocateDirect(reader.dataBytes))
    } catch { case _: DatumReader.NotADatum => () }
  }
}
