package supply.rows

import java.util.Arrays

import org.apache.hadoop.hive.ql.exec.vector.{BytesColumnVector, ColumnVector => OrcVector}
import org.apache.spark.sql.execution.datasources.orc.OrcAtomicColumnVector
import org.apache.spark.sql.execution.vectorized.{Dictionary, OffHeapColumnVector, OnHeapColumnVector, WritableColumnVector}
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnVector
import org.apache.spark.supply.VectorInternals
import org.apache.spark.unsafe.Platform

/**
 * Where the values of a vector of Spark or Arrow lie, so that they can be copied whole. Places are
 * those of Spark's Platform: an array and an offset, or no array and an address. Reused for each
 * batch of a column, or of one within a column.
 *
 * The vectors are those of [[VectorMemory.opened]], or [[RunColumn]]. Nulls of a column that is not `nullable` are only
 * those `within` it: of the struct that the column is a field of.
 */
private[rows] final class VectorMemory(nullable: Boolean) {
  /** The values, or the bytes of texts. */
  var base: AnyRef = _
  var offset = 0L

  /** A byte for each row, 1 is null; null: no row is. */
  var nulls: Array[Byte] = _

  /** Of each row, the number of its values or bytes, and where they begin. That of a null is 0. */
  var lengths: Array[Int] = _
  var starts: Array[Int] = _

  /** The array in which each row's bytes lie, if these are texts of a dictionary or of ORC; null: they are not. */
  var pieces: Array[Array[Byte]] = _

  /** Of lists and maps: how many values of the child they have, and lie in front or between. */
  var childRows = 0

  /**
   * A byte for each of these, 1 where no list has it, and nothing may have been written: Spark's reader
   * of Parquet leaves a place for each list without values. Null: the lists have all of them.
   */
  var between: Array[Byte] = _

  private var ownBetween = Array.emptyByteArray
  private var ownNulls = Array.emptyByteArray
  private var ownLengths = Array.emptyIntArray
  private var ownStarts = Array.emptyIntArray
  private val decoded = new DecodedValues
  private lazy val arrow = new ArrowMemory
  private lazy val orc = new OrcMemory

  /** Whether these are values of `width` bytes each, one for each row. */
  def loadValues(vector: AnyRef, rows: Int, format: String, width: Int,
      within: Array[Byte]): Boolean = vector match {
    case run: RunColumn =>
      loadNulls(run, rows, within)
      at(run.base, run.offset)
    case own: WritableColumnVector =>
      loadNulls(own, rows, within) && loadOwnValues(own, rows, width)
    case of: OrcVector =>
      loadNulls(of, rows, within)
      at(orc.values(of, rows, format))
    case null => false
    case other => arrow.open(other, format) && {
        loadNulls(rows, within)
        at(null, arrow.values)
      }
  }

  /** Whether these are texts or bytes. */
  def loadBytes(vector: AnyRef, rows: Int, format: String, within: Array[Byte]): Boolean = {
    pieces = null
    vector match {
      case run: RunColumn =>
        loadNulls(run, rows, within)
        loadSpans(run)
        at(run.base, run.offset)
      case own: WritableColumnVector => loadNulls(own, rows, within) && {
          val dictionary = VectorInternals.dictionary(own)
          if (dictionary != null) {
            loadPieces(own, dictionary, rows)
            true
          } else loadSpans(own, rows) && loadOwnValues(own.arrayData(), 0, 1)
        }
      case of: BytesColumnVector if format == "u" || format == "z" =>
        loadNulls(of, rows, within)
        reserveSpans(rows)
        pieces = orc.texts(of, rows, nulls, ownStarts, ownLengths)
        starts = ownStarts
        lengths = ownLengths
        true
      case _: OrcVector | null => false
      case other => arrow.open(other, format) && {
          loadNulls(rows, within)
          loadSpans(rows)
          // Texts that are all empty need no memory.
          at(null, arrow.values)
          true
        }
    }
  }

  /** Whether these are lists or maps, whose values are in [[VectorMemory.child]]. */
  def loadLists(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean = vector match {
    case run: RunColumn =>
      loadNulls(run, rows, within)
      loadSpans(run)
      loadChildren(rows)
      true
    case own: WritableColumnVector =>
      loadNulls(own, rows, within) && loadSpans(own, rows) && { loadChildren(rows); true }
    case _: OrcVector | null => false
    case other => arrow.openLists(other) && {
        loadNulls(rows, within)
        loadSpans(rows)
        loadChildren(rows)
        true
      }
  }

  /** Whether these are structs, whose fields are in [[VectorMemory.child]]. */
  def loadStructs(vector: AnyRef, rows: Int, within: Array[Byte]): Boolean = vector match {
    case run: RunColumn =>
      loadNulls(run, rows, within)
      true
    case own: WritableColumnVector =>
      own.dataType().isInstanceOf[StructType] && loadNulls(own, rows, within)
    case _: OrcVector | null => false
    case other => arrow.openStructs(other) && { loadNulls(rows, within); true }
  }

  def isNull(row: Int): Boolean = nulls != null && nulls(row) != 0

  /** Whether each list that is not null has this length. */
  def haveLength(length: Int, rows: Int): Boolean = {
    var row = 0
    while (row < rows && (lengths(row) == length || isNull(row))) row += 1
    row == rows
  }

  private def loadChildren(rows: Int): Unit = {
    childRows = 0
    var areApart = false
    var row = 0
    while (row < rows) {
      // An empty one begins anywhere.
      if (lengths(row) > 0) {
        areApart |= starts(row) != childRows
        childRows = math.max(childRows, starts(row) + lengths(row))
      }
      row += 1
    }
    between = null
    if (areApart) loadBetween(rows)
  }

  private def loadBetween(rows: Int): Unit = {
    if (ownBetween.length < childRows)
      ownBetween = new Array(math.max(childRows, 2 * ownBetween.length))
    Arrays.fill(ownBetween, 0, childRows, 1: Byte)
    var row = 0
    while (row < rows) {
      if (lengths(row) > 0)
        Arrays.fill(ownBetween, starts(row), starts(row) + lengths(row), 0: Byte)
      row += 1
    }
    between = ownBetween
  }

  private def at(array: AnyRef): Boolean =
    array != null && at(array, VectorMemory.offsetIn(array))

  private def at(base: AnyRef, offset: Long): Boolean = {
    this.base = base
    this.offset = offset
    base != null || offset != 0
  }

  private def loadOwnValues(vector: WritableColumnVector, rows: Int, width: Int): Boolean = {
    val dictionary = VectorInternals.dictionary(vector)
    if (dictionary != null)
      VectorMemory.widthOf(vector.dataType()) == width &&
      at(decoded.numbers(vector, dictionary, nulls, rows, width))
    else vector match {
      case heap: OnHeapColumnVector =>
        val values = VectorInternals.values(heap)
        values != null && VectorMemory.widthOf(values) == width && at(values)
      case offHeap: OffHeapColumnVector =>
        VectorMemory.widthOf(offHeap.dataType()) == width && at(null,
          VectorInternals.values(offHeap))
      case _ => false
    }
  }

  private def loadNulls(run: RunColumn, rows: Int, within: Array[Byte]): Unit =
    nulls = if (run.nulls == null) within else merged(run.nulls, within, rows)

  private def loadNulls(vector: WritableColumnVector, rows: Int, within: Array[Byte]): Boolean = {
    nulls = within
    vector match {
      case _ if vector.isAllNull => false
      case _ if !nullable || !vector.hasNull => true
      case heap: OnHeapColumnVector =>
        val found = VectorInternals.nulls(heap)
        if (found != null) nulls = merged(found, within, rows)
        found != null
      case offHeap: OffHeapColumnVector =>
        reserveNulls(rows)
        Platform.copyMemory(null, VectorInternals.nulls(offHeap), ownNulls,
          Platform.BYTE_ARRAY_OFFSET.toLong, rows.toLong)
        nulls = merged(ownNulls, within, rows)
        true
      case _ => false
    }
  }

  private def loadNulls(vector: OrcVector, rows: Int, within: Array[Byte]): Unit =
    if (!nullable || vector.noNulls) nulls = within
    else {
      reserveNulls(rows)
      OrcMemory.nulls(vector, rows, ownNulls)
      nulls = merged(ownNulls, within, rows)
    }

  private def loadNulls(rows: Int, within: Array[Byte]): Unit =
    if (!nullable || !arrow.hasNull) nulls = within
    else {
      reserveNulls(rows)
      VectorMemory.expand(arrow.validity, ownNulls, rows, flip = 1)
      nulls = merged(ownNulls, within, rows)
    }

  /** What is null in one of the two. */
  private def merged(found: Array[Byte], within: Array[Byte], rows: Int): Array[Byte] =
    if (within == null) found
    else {
      reserveNulls(rows)
      var row = 0
      while (row < rows) {
        ownNulls(row) = (found(row) | within(row)).toByte
        row += 1
      }
      ownNulls
    }

  private def reserveNulls(rows: Int): Unit =
    if (ownNulls.length < rows) ownNulls = new Array(math.max(rows, 2 * ownNulls.length))

  private def loadSpans(run: RunColumn): Unit = {
    starts = run.starts
    lengths = run.lengths
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

  private def loadSpans(rows: Int): Unit = {
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
      vector: WritableColumnVector, dictionary: Dictionary, rows: Int): Unit = {
    reserveSpans(rows)
    pieces = decoded.texts(vector, dictionary, nulls, rows)
    var row = 0
    while (row < rows) {
      ownStarts(row) = 0
      ownLengths(row) = pieces(row).length
      row += 1
    }
    starts = ownStarts
    lengths = ownLengths
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
  /** The vector of Spark, or the one of Arrow or ORC in it; null: its values cannot be copied whole. */
  def opened(vector: ColumnVector): AnyRef = vector match {
    case own: WritableColumnVector => own
    case orc: OrcAtomicColumnVector => VectorInternals.inside(orc)
    case other => ArrowMemory.opened(other)
  }

  /** The values of lists, the keys and values of maps, or a field of structs: in a vector that has been loaded. */
  def child(of: AnyRef, number: Int): AnyRef = of match {
    case run: RunColumn => run.children(number)
    case own: WritableColumnVector => own.getChild(number)
    case other => ArrowMemory.child(other, number)
  }

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
    case _: YearMonthIntervalType => 4
    case _: DayTimeIntervalType => 8
    case time if SparkTypes.isTime(time) => 8
    case decimal: DecimalType if decimal.precision <= Decimal.MAX_INT_DIGITS => 4
    case decimal: DecimalType if decimal.precision <= Decimal.MAX_LONG_DIGITS => 8
    case _ => 0
  }
}
