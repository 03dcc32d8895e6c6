package supply.rows

import java.nio.{ByteBuffer, ByteOrder}
import java.util.Arrays

import org.apache.spark.unsafe.Platform

import supply.core.{Buffers, ConfigException}
import supply.source.{BatchWriter, ElementWriter}

/** The values of one column of [[KeptColumns]]. */
private[rows] abstract class KeptColumn(column: RowColumn) {
  private val isNullable = column.column.nullable

  /** A byte for each place, 1 is null. */
  protected var nulls = Array.emptyByteArray
  private var gatheredNulls = Array.emptyByteArray

  /** Takes a run of values out of a batch, for [[scatter]]. */
  val run = new ValuesRun(column.width)

  var places = 0

  def grow(to: Int): Unit = {
    places = to
    if (isNullable) nulls = Arrays.copyOf(nulls, to)
  }

  final def isNull(at: Int): Boolean = isNullable && nulls(at) != 0

  protected final def setNull(at: Int, isNull: Int): Unit =
    if (isNullable) nulls(at) = isNull.toByte

  def putNull(at: Int): Unit

  def reserve(at: Int, bytes: Int): ByteBuffer

  /** Moves the values of the run to these places. */
  final def scatter(to: Array[Int], from: Int, count: Int): Unit = {
    var k = 0
    while (k < count) {
      if (run.isNull(k)) putNull(to(from + k)) else scatter(k, to(from + k))
      k += 1
    }
  }

  protected def scatter(k: Int, to: Int): Unit

  /** Writes the value of a place, which is not null, as that of column `i`. */
  def write(i: Int, to: ElementWriter, at: Int): Unit

  final def write(i: Int, to: BatchWriter, from: Array[Int], first: Int, count: Int): Unit = {
    gather(i, to, from, first, count)
    if (isNullable) {
      if (gatheredNulls.length < count) gatheredNulls = new Array(count)
      var k = 0
      while (k < count) {
        gatheredNulls(k) = nulls(from(first + k))
        k += 1
      }
      to.markNulls(i, gatheredNulls, 0, count)
    }
  }

  protected def gather(i: Int, to: BatchWriter, from: Array[Int], first: Int, count: Int): Unit

  /** Writes those of `count` places that follow each other. */
  final def write(i: Int, to: BatchWriter, from: Int, count: Int): Unit = {
    writeRun(i, to, from, count)
    if (isNullable) to.markNulls(i, nulls, from, count)
  }

  protected def writeRun(i: Int, to: BatchWriter, from: Int, count: Int): Unit
}

private[rows] object KeptColumn {
  def of(column: RowColumn): KeptColumn =
    if (column.width == 0) new KeptBytes(column) else new KeptNumbers(column)
}

/** Values of one width. Booleans have a byte each. */
private[rows] final class KeptNumbers(column: RowColumn) extends KeptColumn(column) {
  import KeptNumbers.Start

  private val width = column.width
  private val isBits = column.column.format == "b"
  private var values = Array.emptyByteArray
  private var buffer = wrapped
  private var gathered = Array.emptyByteArray

  private def wrapped = ByteBuffer.wrap(values).order(ByteOrder.LITTLE_ENDIAN)

  override def grow(to: Int): Unit = {
    super.grow(to)
    if (width.toLong * to > Buffers.MostBytes) throw new ConfigException(
      s"--shuffle-buffer holds more rows than fit: $to values of column '${column.column.name}', " +
        s"of $width bytes each, are above 2 GiB: set a smaller one (shuffle_buffer)")
    values = Arrays.copyOf(values, width * to)
    buffer = wrapped
  }

  private def offset(at: Int) = Start + width.toLong * at

  def putByte(at: Int, value: Byte): Unit = {
    values(at) = value
    setNull(at, 0)
  }

  def putInt(at: Int, value: Int): Unit = {
    Platform.putInt(values, offset(at), value)
    setNull(at, 0)
  }

  /** As Platform names the place where the value is. */
  def put(at: Int, base: AnyRef, from: Long, width: Int): Unit = {
    KeptNumbers.copy(base, from, values, offset(at), width)
    setNull(at, 0)
  }

  override def putNull(at: Int): Unit = {
    Arrays.fill(values, width * at, width * (at + 1), 0: Byte)
    setNull(at, 1)
  }

  override def reserve(at: Int, bytes: Int): ByteBuffer = {
    setNull(at, 0)
    buffer.limit(width * at + bytes).position(width * at)
  }

  override protected def scatter(k: Int, to: Int): Unit = {
    KeptNumbers.copy(run.bytes, Start + width.toLong * k, values, offset(to), width)
    setNull(to, 0)
  }

  override def write(i: Int, to: ElementWriter, at: Int): Unit =
    if (isBits) to.putBoolean(i, values(at) != 0)
    else if (!column.isReserved) to.putInt(i, Platform.getInt(values, offset(at)))
    else Buffers.put(values, offset(at), width, to.reserve(i, width))

  override protected def gather(
      i: Int, to: BatchWriter, from: Array[Int], first: Int, count: Int): Unit = {
    if (gathered.length < width * count) gathered = new Array(width * count)
    var k = 0
    while (k < count) {
      KeptNumbers.copy(values, offset(from(first + k)), gathered, Start + width.toLong * k, width)
      k += 1
    }
    if (isBits) to.putBits(i, gathered, 0, count)
    else Buffers.put(gathered, Start, width * count, to.reserveValues(i, count))
  }

  override protected def writeRun(i: Int, to: BatchWriter, from: Int, count: Int): Unit =
    if (isBits) to.putBits(i, values, from, count)
    else Buffers.put(values, offset(from), width * count, to.reserveValues(i, count))
}

private object KeptNumbers {
  private final val Start = Platform.BYTE_ARRAY_OFFSET.toLong

  private def copy(from: AnyRef, at: Long, to: Array[Byte], toAt: Long, width: Int): Unit =
    width match {
      case 8 => Platform.putLong(to, toAt, Platform.getLong(from, at))
      case 4 => Platform.putInt(to, toAt, Platform.getInt(from, at))
      case 1 => Platform.putByte(to, toAt, Platform.getByte(from, at))
      case 2 => Platform.putShort(to, toAt, Platform.getShort(from, at))
      case _ => Platform.copyMemory(from, at, to, toAt, width.toLong)
    }
}

/** Texts and bytes: each place has an array, which longer values replace. */
private[rows] final class KeptBytes(column: RowColumn) extends KeptColumn(column) {
  private var arrays = new Array[Array[Byte]](0)
  private var lengths = Array.emptyIntArray
  private var gathered = new Array[Array[Byte]](0)
  private var gatheredLengths = Array.emptyIntArray
  private var zeros = Array.emptyIntArray

  override def grow(to: Int): Unit = {
    val before = places
    super.grow(to)
    arrays = Arrays.copyOf(arrays, to)
    Arrays.fill(arrays.asInstanceOf[Array[AnyRef]], before, to, Array.emptyByteArray)
    lengths = Arrays.copyOf(lengths, to)
  }

  def length(at: Int): Int = lengths(at)

  override def putNull(at: Int): Unit = {
    lengths(at) = 0
    setNull(at, 1)
  }

  private def reserved(at: Int, bytes: Int): Array[Byte] = {
    val length = arrays(at).length
    if (length < bytes || length > KeptBytes.Large && length > 2 * bytes)
      arrays(at) = new Array(bytes)
    lengths(at) = bytes
    setNull(at, 0)
    arrays(at)
  }

  override def reserve(at: Int, bytes: Int): ByteBuffer =
    ByteBuffer.wrap(reserved(at, bytes), 0, bytes).order(ByteOrder.LITTLE_ENDIAN)

  override protected def scatter(k: Int, to: Int): Unit = {
    val length = run.length(k)
    System.arraycopy(run.bytes, run.start(k), reserved(to, length), 0, length)
  }

  override def write(i: Int, to: ElementWriter, at: Int): Unit = {
    to.reserve(i, lengths(at)).put(arrays(at), 0, lengths(at))
    ()
  }

  override protected def gather(
      i: Int, to: BatchWriter, from: Array[Int], first: Int, count: Int): Unit = {
    if (gathered.length < count) {
      gathered = new Array(count)
      gatheredLengths = new Array(count)
      zeros = new Array(count)
    }
    var k = 0
    while (k < count) {
      gathered(k) = arrays(from(first + k))
      gatheredLengths(k) = lengths(from(first + k))
      k += 1
    }
    to.gatherBytes(i, gathered, zeros, gatheredLengths, count)
  }

  override protected def writeRun(i: Int, to: BatchWriter, from: Int, count: Int): Unit = {
    val space = to.reserveBytes(i, lengths, from, count)
    var at = from
    while (at < from + count) {
      space.put(arrays(at), 0, lengths(at))
      at += 1
    }
  }
}

private[rows] object KeptBytes {
  /** Longer arrays are not kept for short values. */
  private final val Large = 4096
}
