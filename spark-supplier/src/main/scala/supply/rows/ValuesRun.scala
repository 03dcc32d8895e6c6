package supply.rows

import java.nio.{ByteBuffer, ByteOrder}

import supply.source.{BatchWriter, ForeignFile, ForeignValues}

/** The values of one column in a run of rows, as a [[ColumnCopy]] writes them. */
private[rows] final class ValuesRun(width: Int) extends BatchWriter {
  var bytes = Array.emptyByteArray
  private var nulls = Array.emptyByteArray
  private var nullsFrom = 0
  private var hasNulls = false
  private var ends = Array.emptyIntArray

  /** The next values are those of a run. */
  def begin(): Unit = hasNulls = false

  def isNull(k: Int): Boolean = hasNulls && nulls(nullsFrom + k) != 0

  def start(k: Int): Int = if (k == 0) 0 else ends(k - 1)

  def length(k: Int): Int = ends(k) - start(k)

  private def space(count: Int): ByteBuffer = {
    if (bytes.length < count) bytes = new Array(math.max(count, 2 * bytes.length))
    ByteBuffer.wrap(bytes, 0, count).order(ByteOrder.LITTLE_ENDIAN)
  }

  override def reserveValues(column: Int, count: Int): ByteBuffer = space(width * count)

  override def reserveBytes(column: Int, lengths: Array[Int], from: Int, count: Int): ByteBuffer = {
    if (ends.length < count) ends = new Array(math.max(count, 2 * ends.length))
    var end = 0
    var k = 0
    while (k < count) {
      end = Math.addExact(end, lengths(from + k))
      ends(k) = end
      k += 1
    }
    space(end)
  }

  override def putBits(column: Int, values: Array[Byte], from: Int, count: Int): Unit = {
    space(count).put(values, from, count)
    ()
  }

  override def markNulls(column: Int, nulls: Array[Byte], from: Int, count: Int): Unit = {
    this.nulls = nulls
    nullsFrom = from
    hasNulls = true
  }

  // A ColumnCopy calls no other.
  private def refuse() = throw new UnsupportedOperationException
  override def putInt(column: Int, value: Int): Unit = refuse()
  override def putBoolean(column: Int, value: Boolean): Unit = refuse()
  override def putNull(column: Int): Unit = refuse()
  override def reserve(column: Int, bytes: Int): ByteBuffer = refuse()
  override def putInts(column: Int, values: Array[Int], from: Int, count: Int): Unit = refuse()
  override def putBooleans(column: Int, values: Array[Int], from: Int, count: Int): Unit = refuse()
  override def putBytes(column: Int, bytes: Array[Byte], start: Int, ends: Array[Int], from: Int,
      count: Int): Unit = refuse()
  override def gatherBytes(column: Int, bytes: Array[Array[Byte]], starts: Array[Int],
      lengths: Array[Int], count: Int): Unit = refuse()
  override def refer(column: Int, file: ForeignFile, values: ForeignValues, places: Array[Int],
      from: Int, count: Int): Unit = refuse()
}
