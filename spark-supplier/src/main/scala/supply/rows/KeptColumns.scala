package supply.rows

import java.nio.ByteBuffer

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow

import supply.source.{BatchWriter, ElementWriter, ForeignFile, ForeignValues}

/**
 * Rows in numbered places, column by column and as blocks have them, so that those of any places
 * can be written at once. A new row in a place replaces the one that was there.
 */
private[rows] final class KeptColumns(columns: Array[RowColumn]) extends ElementWriter {
  private val kept = columns.map(KeptColumn.of)

  /** Where the next values go. */
  private var place = 0
  private val fixedBytes = columns.filter(_.isReserved).map(_.width.toLong).sum
  private val texts = kept.collect { case texts: KeptBytes => texts }

  /** Bytes of a value in the fixed part of an UnsafeRow; 0: it is elsewhere, or not as in a block. */
  private val widths = columns.map(KeptColumns.widthInRow)

  def keep(row: InternalRow, at: Int): Unit = {
    grow(at)
    row match {
      case unsafe: UnsafeRow => keepUnsafe(unsafe)
      case _ => RowColumn.write(columns, row, this)
    }
  }

  private def grow(at: Int): Unit = {
    place = at
    if (at >= kept(0).places) {
      val places = math.max(64, 2 * at)
      kept.foreach(_.grow(places))
    }
  }

  private def keepUnsafe(row: UnsafeRow): Unit = {
    val base = row.getBaseObject
    val fields = row.getBaseOffset + UnsafeRow.calculateBitSetWidthInBytes(row.numFields)
    val hasNull = row.anyNull()
    var i = 0
    while (i < columns.length) {
      val width = widths(i)
      if (width == 0 || hasNull && row.isNullAt(i)) columns(i).write(row, i, i, this)
      else kept(i).asInstanceOf[KeptNumbers].put(place, base, fields + 8L * i, width)
      i += 1
    }
  }

  /** Keeps `count` rows of a batch, of which the column `i` is loaded: in `places(first)` and so on. */
  def keepRun(
      copy: ColumnCopy, i: Int, row: Int, places: Array[Int], first: Int, count: Int): Unit = {
    var k = first
    while (k < first + count) {
      grow(places(k))
      k += 1
    }
    var done = 0
    while (done < count) {
      // A run is a copy besides what is kept.
      var piece = math.min(count - done, KeptColumns.RunRows)
      while (piece > 1 && copy.bytes(row + done, piece) > KeptColumns.RunBytes) piece /= 2
      kept(i).run.begin()
      copy.write(row + done, piece, i, kept(i).run)
      kept(i).scatter(places, first + done, piece)
      done += piece
    }
  }

  /** Keeps a value of the column `i` that is not loaded. */
  def keepValue(row: InternalRow, i: Int, at: Int): Unit = {
    grow(at)
    columns(i).write(row, i, i, this)
  }

  def bytes(places: Array[Int], from: Int, count: Int): Long = {
    var bytes = count * fixedBytes
    var i = 0
    while (i < texts.length) {
      var k = from
      while (k < from + count) {
        bytes += texts(i).length(places(k))
        k += 1
      }
      i += 1
    }
    bytes
  }

  /** Bytes of the texts at a place. */
  def textBytes(at: Int): Long = {
    var bytes = 0L
    var i = 0
    while (i < texts.length) {
      bytes += texts(i).length(at)
      i += 1
    }
    bytes
  }

  /** Writes those of `count` places that follow each other. */
  def write(to: BatchWriter, from: Int, count: Int): Unit = {
    var i = 0
    while (i < kept.length) {
      kept(i).write(i, to, from, count)
      i += 1
    }
  }

  def write(to: BatchWriter, places: Array[Int], from: Int, count: Int): Unit = {
    var i = 0
    while (i < kept.length) {
      kept(i).write(i, to, places, from, count)
      i += 1
    }
  }

  def write(to: ElementWriter, at: Int): Unit = {
    var i = 0
    while (i < kept.length) {
      if (kept(i).isNull(at)) to.putNull(i) else kept(i).write(i, to, at)
      i += 1
    }
  }

  override def putInt(column: Int, value: Int): Unit = numbers(column).putInt(place, value)

  override def putBoolean(column: Int, value: Boolean): Unit =
    numbers(column).putByte(place, if (value) 1 else 0)

  override def putNull(column: Int): Unit = kept(column).putNull(place)

  override def reserve(column: Int, bytes: Int): ByteBuffer = kept(column).reserve(place, bytes)

  override def refer(column: Int, file: ForeignFile, values: ForeignValues, places: Array[Int],
      from: Int, count: Int): Unit = throw new UnsupportedOperationException

  private def numbers(column: Int) = kept(column).asInstanceOf[KeptNumbers]
}

private[rows] object KeptColumns {
  private final val RunRows = 256
  private final val RunBytes = 1 << 20

  /** Whether rows with these columns can be kept. */
  def canKeep(columns: Array[RowColumn]): Boolean =
    columns.nonEmpty && columns.forall(column =>
      column.column.children.isEmpty && ColumnCopy.of(column).isDefined)

  private def widthInRow(column: RowColumn): Int = column.column.format match {
    case "b" => 1
    case "c" | "s" | "i" | "l" | "f" | "g" | "tdD" => column.width
    case instant if instant.startsWith("tsu:") => column.width
    case _ => 0
  }
}
