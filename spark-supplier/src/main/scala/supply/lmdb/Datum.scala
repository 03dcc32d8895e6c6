package supply.lmdb

import supply.protocol.{Column, Schema}

/** Caffe's Datum: the paper's tuple of seven values, and the columns of a block. */
private[supply] object Datum {
  /**
   * (key, label, channels, height, width, encoded, data). The key has one char per byte
   * (ISO-8859-1), so it holds any bytes. The label is a decimal number. The data is channels ×
   * height × width as stored, or an encoded image, or little-endian float32.
   */
  type Tuple = (String, String, Int, Int, Int, Boolean, Array[Byte])

  val schema: Schema = Schema(Vector(
      Column("key", "z"),
      Column("label", "i"),
      Column("channels", "i"),
      Column("height", "i"),
      Column("width", "i"),
      Column("encoded", "b"),
      Column("data", "z")))

  /** The schema with views of data that ranks read in place. */
  val inPlaceSchema: Schema = Schema(schema.columns.updated(6, Column("data", "vz")))

  val Columns: IndexedSeq[Int] = schema.columns.indices

  final val Key = 0
  final val Label = 1
  final val Channels = 2
  final val Height = 3
  final val Width = 4
  final val Encoded = 5
  final val Data = 6

  /** A key as supply-cat prints it. */
  def printable(key: Array[Byte]): String = key.map { byte =>
    if (byte >= 0x20 && byte < 0x7f && byte != '\\') byte.toChar.toString
    else f"\\x${byte & 0xff}%02x"
  }.mkString
}
