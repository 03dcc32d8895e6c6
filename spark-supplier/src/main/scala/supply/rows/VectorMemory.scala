package supply.rows

import java.util.Arrays

import org.apache.spark.sql.execution.vectorized.{Dictionary, OffHeapColumnVector, OnHeapColumnVector, WritableColumnVector}
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnVector
import org.apache.spark.supply.VectorInternals
import org.apache.spark.unsafe.Platform

/**
 * Where the values of a vector of Spark or Arrow lie, so that they can be copied whole. Places are
 * those of Spark's Platform: an array and an offset, or no array and an address. Reused for each
 * batch of a column.
 */
private[rows] final class VectorMemory {
  /** The values, or those of the child: bytes of texts, numbers of arrays. */
  var base: AnyRef = _
  var offset = 0L

  /** A byte for each row, 1 is null; null: no row is. */
  var nulls: Array[Byte] = _

  /** Of each row, the number of values of the child, and where they begin. That of a null is 0. */
  var lengths: Array[Int] = _
  var starts: Array[Int] = _

  /** The bytes of each row, if these are texts in a dictionary; null: they are not. */
  var pieces: Array[Array[Byte]] = _

  private var ownNulls = Array.emptyByteArray
  private var ownLengths = Array.emptyIntArray
  private var ownStarts = Array.emptyIntArray
  private val decoded = new DecodedValues
  private lazy val child = new VectorMemory
  private lazy val arrow = new ArrowMemory

  /** Whether these are values of `width` bytes each, one for each row. */
  def loadValues(vector: ColumnVector, rows: Int, format: String, width: Int): Boolean =
    vector match {
      case own: WritableColumnVector =>
        !own.isAllNull && loadNulls(own, rows) && loadOwnValues(own, rows, width)
      case other => arrow.open(other, format) && {
          nulls = nullsOf(arrow, rows)
          at(null, arrow.values)
        }
    }

  /** Whether these are texts or bytes. */
  def loadBytes(vector: ColumnVector, rows: Int, format: String): Boolean = {
    pieces = null
    vector match {
      case own: WritableColumnVector => !own.isAllNull && loadNulls(own, rows) && {
          val dictionary = VectorInternals.dictionary(own)
          if (dictionary != null) loadPieces(own, dictionary, rows)
          else loadSpans(own, rows) && loadOwnValues(own.arrayData(), 0, 1)
        }
      case other => arrow.open(other, format) && {
          nulls = nullsOf(arrow, rows)
          loadSpans(arrow, rows)
          at(null, arrow.values)
        }
    }
  }

  /** Whether these are arrays of numbers, none of which is null. */
  def loadLists(vector: ColumnVector, rows: Int, format: String, width: Int): Boolean =
    vector match {
      case own: WritableColumnVector =>
        !own.isAllNull && !own.hasDictionary && loadNulls(own, rows) && loadSpans(own, rows) && {
          val numbers = own.arrayData()
          var end = 0
          var row = 0
          while (row < rows) {
            // An empty one begins anywhere.
            if (lengths(row) > 0) end = math.max(end, starts(row) + lengths(row))
            row += 1
          }
          !numbers.isAllNull && child.loadNulls(numbers, end) && haveNoNull(child.nulls, rows) &&
          child.loadOwnValues(numbers, end, width) && at(child.base, child.offset)
        }
      case other => arrow.openLists(other, format) && {
          nulls = nullsOf(arrow, rows)
          loadSpans(arrow, rows)
          at(null, arrow.values)
        }
    }

  /** Whether no row has a null of the child. It may have some that no row has. */
  private def haveNoNull(nulls: Array[Byte], rows: Int): Boolean = nulls == null || {
    var row = 0
    var found = false
    while (row < rows && !found) {
      var at = starts(row)
      val end = at + lengths(row)
      while (at < end && nulls(at) == 0) at += 1
      found = at < end
      row += 1
    }
    !found
  }

  private def at(base: AnyRef, offset: Long): Boolean = {
    this.base = base
    this.offset = offset
    base != null || offset != 0
  }

  private def loadOwnValues(vector: WritableColumnVector, rows: Int, width: Int): Boolean = {
    val dictionary = VectorInternals.dictionary(vector)
    if (dictionary != null) {
      val values = decoded.numbers(vector, dictionary, nulls, rows)
      values != null && VectorMemory.widthOf(values) == width &&
      at(values, VectorMemory.offsetIn(values))
    } else vector match {
      case heap: OnHeapColumnVector =>
        val values = VectorInternals.values(heap)
        values != null && VectorMemory.widthOf(values) == width &&
        at(values, VectorMemory.offsetIn(values))
      case offHeap: OffHeapColumnVector =>
        VectorMemory.widthOf(offHeap.dataType()) == width && at(null,
          VectorInternals.values(offHeap))
      case _ => false
    }
  }

  private def loadNulls(vector: WritableColumnVector, rows: Int): Boolean = {
    nulls = null
    vector match {
      case _ if !vector.hasNull => true
      case heap: OnHeapColumnVector =>
        nulls = VectorInternals.nulls(heap)
        nulls != null
      case offHeap: OffHeapColumnVector =>
        reserveNulls(rows)
        Platform.copyMemory(null, VectorInternals.nulls(offHeap), ownNulls,
          Platform.BYTE_ARRAY_OFFSET.toLong, rows.toLong)
        nulls = ownNulls
        true
      case _ => false
    }
  }

  private def reserveNulls(rows: Int): Unit =
    if (ownNulls.length < rows) ownNulls = new Array(math.max(rows, 2 * ownNulls.length))

  private def nullsOf(arrow: ArrowMemory, rows: Int): Array[Byte] =
    if (!arrow.hasNull) null
    else {
      reserveNulls(rows)
      VectorMemory.expand(arrow.validity, ownNulls, rows, flip = 1)
      ownNulls
    }

  private def loadSpans(vector: WritableColumnVector, rows: Int): Boolean = {
    vector match {
      case heap: OnHeapColumnVector =>
        starts = VectorInternals.starts(heap)
        lengths = VectorInternals.lengths(heap)
        if (nulls != null && lengths != null) {
          reserveSpans(rows)
          System.arraycopy(lengths, 0, ownLengths, 0, rows)
          lengths = ownLengths
        }
      case offHeap: OffHeapColumnVector =>
        reserveSpans(rows)
        copyInts(VectorInternals.starts(offHeap), ownStarts, rows)
        copyInts(VectorInternals.lengths(offHeap), ownLengths, rows)
        starts = ownStarts
        lengths = ownLengths
      case _ => starts = null
    }
    starts != null && lengths != null && { clearNulls(rows); true }
  }

  private def loadSpans(arrow: ArrowMemory, rows: Int): Unit = {
    reserveSpans(rows + 1)
    copyInts(arrow.offsets, ownStarts, rows + 1)
    var row = 0
    while (row < rows) {
      ownLengths(row) = ownStarts(row + 1) - ownStarts(row)
      row += 1
    }
    starts = ownStarts
    lengths = ownLengths
    clearNulls(rows)
  }

  private def loadPieces(
      vector: WritableColumnVector, dictionary: Dictionary, rows: Int): Boolean = {
    reserveSpans(rows)
    pieces = decoded.texts(vector, dictionary, nulls, rows)
    var row = 0
    while (pieces != null && row < rows) {
      ownLengths(row) = pieces(row).length
      row += 1
    }
    lengths = ownLengths
    pieces != null
  }

  private def reserveSpans(rows: Int): Unit = if (ownStarts.length < rows) {
    ownStarts = new Array(math.max(rows, 2 * ownStarts.length))
    ownLengths = new Array(ownStarts.length)
  }

  private def copyInts(from: Long, to: Array[Int], count: Int): Unit =
    Platform.copyMemory(null, from, to, Platform.INT_ARRAY_OFFSET.toLong, 4L * count)

  private def clearNulls(rows: Int): Unit = if (nulls != null) {
    var row = 0
    while (row < rows) {
      if (nulls(row) != 0) lengths(row) = 0
      row += 1
    }
  }
}

private[rows] object VectorMemory {
  /** Each of `rows` bits as a byte, 0 or 1; with `flip` 1, turned round. */
  def expand(bits: Long, to: Array[Byte], rows: Int, flip: Int): Unit = {
    var row = 0
    while (row < rows) {
      to(row) = (Platform.getByte(null, bits + (row >> 3)) >> (row & 7) & 1 ^ flip).toByte
      row += 1
    }
  }

  def widthOf(array: AnyRef): Int = array match {
    case _: Array[Long] | _: Array[Double] => 8
    case _: Array[Int] | _: Array[Float] => 4
    case _: Array[Short] => 2
    case _: Array[Byte] => 1
    case other => throw new IllegalArgumentException(other.getClass.getName)
  }

  def offsetIn(array: AnyRef): Long = (array match {
    case _: Array[Long] => Platform.LONG_ARRAY_OFFSET
    case _: Array[Double] => Platform.DOUBLE_ARRAY_OFFSET
    case _: Array[Int] => Platform.INT_ARRAY_OFFSET
    case _: Array[Float] => Platform.FLOAT_ARRAY_OFFSET
    case _: Array[Short] => Platform.SHORT_ARRAY_OFFSET
    case _: Array[Byte] => Platform.BYTE_ARRAY_OFFSET
    case other => throw new IllegalArgumentException(other.getClass.getName)
  }).toLong

  /** Bytes of a value in a vector of Spark; 0: it has none of its own. */
  def widthOf(dataType: DataType): Int = dataType match {
    case BooleanType | ByteType => 1
    case ShortType => 2
    case IntegerType | DateType | FloatType => 4
    case LongType | DoubleType | TimestampType | TimestampNTZType => 8
    case decimal: DecimalType if decimal.precision <= Decimal.MAX_INT_DIGITS => 4
    case decimal: DecimalType if decimal.precision <= Decimal.MAX_LONG_DIGITS => 8
    case _ => 0
  }
}

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
    java.lang.reflect.Array.getLength(array) match {
      case length if length < rows => math.max(rows, 2 * length)
      case _ => 0
    }

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
