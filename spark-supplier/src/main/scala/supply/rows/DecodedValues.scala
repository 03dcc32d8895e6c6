package supply.rows

import java.util.Arrays

import org.apache.spark.sql.execution.vectorized.{Dictionary, WritableColumnVector}
import org.apache.spark.sql.types._

/** Values that a vector has as numbers in a dictionary. Those of nulls may be no numbers of it. */
private[rows] final class DecodedValues {
  private var longs = Array.emptyLongArray
  private var doubles = Array.emptyDoubleArray
  private var ints = Array.emptyIntArray
  private var floats = Array.emptyFloatArray
  private var shorts = Array.emptyShortArray
  private var bytes = Array.emptyByteArray
  private var rowsOfTexts = new Array[Array[Byte]](0)

  /** The texts of `known`, by number. */
  private var texts = new Array[Array[Byte]](0)
  private var known: Dictionary = _

  private def space(array: AnyRef, rows: Int): Int =
    math.max(rows, 2 * java.lang.reflect.Array.getLength(array))

  /** An array of `rows` numbers; null: they are no numbers. */
  def numbers(vector: WritableColumnVector, dictionary: Dictionary, nulls: Array[Byte],
      rows: Int): AnyRef = {
    val ids = vector.getDictionaryIds
    def each(decode: Int => Unit): Unit = {
      var row = 0
      while (row < rows) {
        if (nulls == null || nulls(row) == 0) decode(row)
        row += 1
      }
    }
    vector.dataType() match {
      case ByteType =>
        if (bytes.length < rows) bytes = new Array(space(bytes, rows))
        each(row => bytes(row) = dictionary.decodeToInt(ids.getDictId(row)).toByte)
        bytes
      case ShortType =>
        if (shorts.length < rows) shorts = new Array(space(shorts, rows))
        each(row => shorts(row) = dictionary.decodeToInt(ids.getDictId(row)).toShort)
        shorts
      case FloatType =>
        if (floats.length < rows) floats = new Array(space(floats, rows))
        each(row => floats(row) = dictionary.decodeToFloat(ids.getDictId(row)))
        floats
      case DoubleType =>
        if (doubles.length < rows) doubles = new Array(space(doubles, rows))
        each(row => doubles(row) = dictionary.decodeToDouble(ids.getDictId(row)))
        doubles
      case other => VectorMemory.widthOf(other) match {
          case 4 =>
            if (ints.length < rows) ints = new Array(space(ints, rows))
            each(row => ints(row) = dictionary.decodeToInt(ids.getDictId(row)))
            ints
          case 8 =>
            if (longs.length < rows) longs = new Array(space(longs, rows))
            each(row => longs(row) = dictionary.decodeToLong(ids.getDictId(row)))
            longs
          case _ => null
        }
    }
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
