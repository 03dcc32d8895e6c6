package supply.rows

import java.util.Arrays

import org.apache.spark.sql.execution.vectorized.{Dictionary, WritableColumnVector}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform

/** Values that a vector has as numbers in a dictionary. Those of nulls may be no numbers of it. */
private[rows] final class DecodedValues {
  import DecodedValues.Start

  private var values = Array.emptyByteArray
  private var rowsOfTexts = new Array[Array[Byte]](0)

  /** The texts of `known`, by number. */
  private var texts = new Array[Array[Byte]](0)
  private var known: Dictionary = _

  /** The values of `rows` rows, `width` bytes each. */
  def numbers(vector: WritableColumnVector, dictionary: Dictionary, nulls: Array[Byte],
      rows: Int, width: Int): Array[Byte] = {
    val ids = vector.getDictionaryIds
    if (values.length < width * rows) values = new Array(math.max(width * rows, 2 * values.length))
    val to = values
    def each(decode: (Int, Long) => Unit): Unit = {
      var row = 0
      while (row < rows) {
        if (nulls == null || nulls(row) == 0)
          decode(ids.getDictId(row), Start + width.toLong * row)
        row += 1
      }
    }
    (vector.dataType(), width) match {
      case (FloatType, _) =>
        each((id, at) => Platform.putFloat(to, at, dictionary.decodeToFloat(id)))
      case (DoubleType, _) =>
        each((id, at) => Platform.putDouble(to, at, dictionary.decodeToDouble(id)))
      case (_, 8) => each((id, at) => Platform.putLong(to, at, dictionary.decodeToLong(id)))
      case (_, 4) => each((id, at) => Platform.putInt(to, at, dictionary.decodeToInt(id)))
      case (_, 2) => each((id, at) => Platform.putShort(to, at, dictionary.decodeToInt(id).toShort))
      case _ => each((id, at) => Platform.putByte(to, at, dictionary.decodeToInt(id).toByte))
    }
    to
  }

  /** The bytes of each row; those of a null are empty. Each text of the dictionary is decoded once. */
  def texts(vector: WritableColumnVector, dictionary: Dictionary, nulls: Array[Byte],
      rows: Int): Array[Array[Byte]] = {
    if (dictionary ne known) {
      known = dictionary
      Arrays.fill(texts.asInstanceOf[Array[AnyRef]], null)
    }
    if (rowsOfTexts.length < rows) rowsOfTexts = new Array(rows)
    val ids = vector.getDictionaryIds
    var row = 0
    while (row < rows) {
      rowsOfTexts(row) =
        if (nulls != null && nulls(row) != 0) Array.emptyByteArray else text(ids.getDictId(row))
      row += 1
    }
    rowsOfTexts
  }

  private def text(id: Int): Array[Byte] = {
    if (id >= texts.length) texts = Arrays.copyOf(texts, math.max(id + 1, 2 * texts.length))
    if (texts(id) == null) texts(id) = known.decodeToBinary(id)
    texts(id)
  }
}

private object DecodedValues {
  private final val Start = Platform.BYTE_ARRAY_OFFSET.toLong
}
