package supply.pair

import java.nio.{ByteBuffer, ByteOrder}

import supply.data.{ElementCursor, ElementWriter, ForeignFile, ForeignValues}
import supply.protocol.{Layout, Schema}

/** Counts the blocks that a BlockWriter with the same arguments would make, without a pair. */
final class BlockCount(blockBytes: Int, schema: Schema, blockElements: Int) extends ElementWriter {
  private val headerBytes = Layout.blockHeaderBytes(schema.columns.size)
  private val columns = schema.columns.map(new BlockColumn(_, new CountedBytes))
  private var referenced = 0L
  private var elements = 0
  private var count = 0L

  def blocks: Long = count

  def append(cursor: ElementCursor): Unit = {
    if (elements == blockElements) close()
    cursor.write(this)
    if (elements > 0 && (referenced > BlockWriter.ReferencedMax ||
        headerBytes + columns.map(_.alignedBytes.toLong).sum > blockBytes)) {
      close()
      cursor.write(this)
    }
    if (elements == 0) count += 1
    elements += 1
  }

  /** Ends the current block: a block holds elements of one partition. */
  def close(): Unit = {
    elements = 0
    referenced = 0
    columns.foreach(_.truncate(0))
  }

  override def putInt(column: Int, value: Int): Unit = columns(column).putInt(value)

  override def putBoolean(column: Int, value: Boolean): Unit = columns(column).putBoolean(value)

  override def putNull(column: Int): Unit = { columns(column).putNull(); () }

  override def reserve(column: Int, bytes: Int): ByteBuffer = columns(column).reserve(bytes)

  override def refer(column: Int, file: ForeignFile, values: ForeignValues, places: Array[Int],
      from: Int, count: Int): Unit = for (i <- from until from + count) {
    columns(column).refer(1, file, values, places(i))
    val length = values.lengths(places(i))
    if (length > Layout.Constant.VIEW_INLINE_MAX) referenced += length
  }
}

/** Keeps the number of bytes, and not the bytes. */
private[pair] final class CountedBytes extends BytesBuffer {
  private var scratch = ByteBuffer.allocate(0)

  override def reserve(n: Int): ByteBuffer = {
    if (n > scratch.capacity()) scratch = ByteBuffer.allocate(n).order(ByteOrder.LITTLE_ENDIAN)
    count += n
    scratch.clear().limit(n)
  }

  override def appendTo(slot: ByteBuffer, at: Int): Int =
    throw new UnsupportedOperationException("the bytes are only counted")
}
