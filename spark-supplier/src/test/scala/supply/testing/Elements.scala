package supply.testing

import java.nio.{ByteBuffer, ByteOrder}

import supply.source.{ElementCursor, ElementWriter, ForeignFile, ForeignValues}

object Elements {

  /** The values that a cursor writes, in order, for each element. */
  def all(cursor: ElementCursor): Seq[Seq[Any]] = {
    val seen = Seq.newBuilder[Seq[Any]]
    while (cursor.next()) {
      val values = new Values
      cursor.write(values)
      seen += values.all
    }
    seen.result()
  }

  private final class Values extends ElementWriter {
    private val values = Seq.newBuilder[() => Any]
    def all: Seq[Any] = values.result().map(_.apply())
    override def putInt(column: Int, value: Int): Unit = { values += (() => value); () }
    override def putBoolean(column: Int, value: Boolean): Unit = {
      values += (() => column -> value); ()
    }
    override def reserve(column: Int, bytes: Int): ByteBuffer = {
      val space = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN)
      values += (() => column -> space.array.toSeq)
      space
    }
    // As many at once, of one element.
    override def reserveValues(column: Int, count: Int): ByteBuffer = {
      require(count == 1)
      val space = ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN)
      values += (() => space.getInt(0))
      space
    }
    override def reserveBytes(
        column: Int, lengths: Array[Int], from: Int, count: Int): ByteBuffer = {
      require(count == 1)
      reserve(column, lengths(from))
    }
    override def putBits(column: Int, bits: Array[Byte], from: Int, count: Int): Unit = {
      require(count == 1)
      putBoolean(column, bits(from) != 0)
    }
    override def refer(column: Int, file: ForeignFile, foreign: ForeignValues, places: Array[Int],
        from: Int, count: Int): Unit =
      for (place <- places.slice(from, from + count)) {
        val value = (column, file, foreign.offsets(place), foreign.lengths(place),
          foreign.starts(place), foreign.rests(place))
        values += (() => value)
      }
  }
}
