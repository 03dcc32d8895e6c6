package supply.lmdb

import java.nio.ByteBuffer

import com.google.protobuf.WireFormat
import org.fusesource.lmdbjni.DirectBuffer

import supply.lmdb.CaffeProtos.{Datum => Proto}

/**
 * Reads a Datum's numbers in place, and remembers where its data is: Protobuf's own parser would
 * make an object and a copy per record. For one thread.
 */
private[supply] final class DatumReader {
  var label = 0
  var channels = 0
  var height = 0
  var width = 0
  var encoded = false

  private var value: DirectBuffer = _
  private var at = 0
  private var end = 0
  private var dataAt = 0
  private var dataLength = 0
  private var floats = 0
  private var floatsAt = 0
  private var floatPieces = 0

  /** Where in the value [[dataBytes]] bytes lie one after the other; -1: they do not. */
  def dataOffset: Int =
    if (dataLength > 0 || floats == 0) dataAt else if (floatPieces == 1) floatsAt else -1

  /** Bytes of `data`, or of `float_data` as float32 if there is no data. */
  def dataBytes: Int = if (dataLength > 0) dataLength else floats * java.lang.Float.BYTES

  /** Copies [[dataBytes]] bytes to the buffer's position. */
  def copyData(to: ByteBuffer): Unit =
    if (dataLength > 0 || floats == 0) {
      value.getBytes(dataAt, to, dataLength)
      ()
    } else copyFloats(to)

  /** Reads the value in the first `bytes` bytes of the buffer. Throws [[DatumReader.NotADatum]]. */
  def read(buffer: DirectBuffer, bytes: Int): Unit = {
    value = buffer
    at = 0
    end = bytes
    label = 0
    channels = 0
    height = 0
    width = 0
    encoded = false
    dataAt = 0
    dataLength = 0
    floats = 0
    floatPieces = 0
    while (at < end) {
      val tag = varint().toInt
      val field = WireFormat.getTagFieldNumber(tag)
      if (field == 0) fail("a field has number 0")
      val wireType = WireFormat.getTagWireType(tag)
      if (field > Proto.ENCODED_FIELD_NUMBER) fail(s"it has a field $field, which no Datum has")
      readField(field, wireType)
    }
    if (!encoded) requireShape()
  }

  /**
   * Other messages and texts can be read as Datums by chance: then the shape gives them away. Bytes
   * may be without any shape.
   */
  private def requireShape(): Unit = {
    val hasData = dataLength > 0
    val values = if (hasData) dataLength else floats
    val plane = channels.toLong * height
    val fits =
      if (hasData && channels == 0 && height == 0 && width == 0) true
      else if (values == 0) plane == 0 || width == 0
      else channels > 0 && height > 0 && values % plane == 0 && values / plane == width
    if (!fits)
      fail(
        s"its shape is $channels x $height x $width (channels, height, width), but it has $values " +
          (if (hasData) "bytes of data" else "floats"))
  }

  private def readField(field: Int, wireType: Int): Unit = field match {
    case Proto.DATA_FIELD_NUMBER =>
      if (wireType != WireFormat.WIRETYPE_LENGTH_DELIMITED) mistyped(field, wireType)
      dataLength = length()
      dataAt = at
      at += dataLength
    case Proto.FLOAT_DATA_FIELD_NUMBER if wireType == WireFormat.WIRETYPE_LENGTH_DELIMITED =>
      val n = length()
      if (n % java.lang.Float.BYTES != 0) fail(s"its packed float_data has $n bytes")
      floats += n / java.lang.Float.BYTES
      addFloats(n)
    case Proto.FLOAT_DATA_FIELD_NUMBER =>
      if (wireType != WireFormat.WIRETYPE_FIXED32) mistyped(field, wireType)
      floats += 1
      addFloats(java.lang.Float.BYTES)
    case _ =>
      if (wireType != WireFormat.WIRETYPE_VARINT) mistyped(field, wireType)
      val number = varint()
      field match {
        case Proto.CHANNELS_FIELD_NUMBER => channels = number.toInt
        case Proto.HEIGHT_FIELD_NUMBER => height = number.toInt
        case Proto.WIDTH_FIELD_NUMBER => width = number.toInt
        case Proto.LABEL_FIELD_NUMBER => label = number.toInt
        case Proto.ENCODED_FIELD_NUMBER => encoded = number != 0
      }
  }

  private def addFloats(bytes: Int): Unit = {
    floatsAt = at
    floatPieces += 1
    advance(bytes)
  }

  /** The floats are packed, or each follows a tag of its own: a second walk gathers them. */
  private def copyFloats(to: ByteBuffer): Unit = {
    at = 0
    while (at < end) {
      val tag = varint().toInt
      val wireType = WireFormat.getTagWireType(tag)
      if (WireFormat.getTagFieldNumber(tag) == Proto.FLOAT_DATA_FIELD_NUMBER) {
        val n =
          if (wireType == WireFormat.WIRETYPE_LENGTH_DELIMITED) length() else java.lang.Float.BYTES
        value.getBytes(at, to, n)
        at += n
      } else skip(wireType)
    }
  }

  private def skip(wireType: Int): Unit = wireType match {
    case WireFormat.WIRETYPE_VARINT => varint(); ()
    case _ => advance(length())
  }

  private def varint(): Long = {
    var result = 0L
    var shift = 0
    while (shift < 64) {
      if (at >= end) fail("it ends in the middle of a number")
      val byte = value.getByte(at)
      at += 1
      result |= (byte & 0x7fL) << shift
      if (byte >= 0) return result
      shift += 7
    }
    fail("a number has more than ten bytes")
  }

  /** A length, checked against the bytes that are left. */
  private def length(): Int = {
    val n = varint()
    if (n < 0 || n > end - at) fail(s"a field of $n bytes goes beyond its end")
    n.toInt
  }

  private def advance(n: Int): Unit = {
    if (n > end - at) fail("it ends in the middle of a field")
    at += n
  }

  private def mistyped(field: Int, wireType: Int): Nothing =
    fail(s"its ${Proto.getDescriptor.findFieldByNumber(field).getName} has wire type $wireType")

  private def fail(why: String): Nothing = throw new DatumReader.NotADatum(why)
}

private[supply] object DatumReader {
  final class NotADatum(why: String) extends RuntimeException(why)
}
