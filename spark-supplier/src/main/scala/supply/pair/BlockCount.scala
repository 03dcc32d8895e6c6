package supply.pair

import java.nio.ByteBuffer
import java.util.Arrays

import supply.data.{ElementCursor, ElementWriter}
import supply.protocol.{Format, Layout, Schema}

/**
 * Counts the blocks that BlockWriter would make of elements, without writing them anywhere.
 *
 * @param blockElements
 *   as for BlockWriter
 */
final class BlockCount(blockBytes: Int, schema: Schema, blockElements: Int) extends ElementWriter {
  private val headerBytes =
    Layout.aligned(Layout.BlockHeader.SIZE + schema.columns.size * Layout.BlockColumn.SIZE)
  private val formats = schema.columns.map(Format.of)

  /**
   * Bytes of any length by column: those of the block so far, and those of the element that is
   * being added.
   */
  private val dataBytes = new Array[Long](schema.columns.size)
  private val addedBytes = new Array[Long](schema.columns.size)
  private var scratch = ByteBuffer.allocate(1 << 16)
  private var elements = 0
  private var count = 0L

  def blocks: Long = count

  def append(cursor: ElementCursor): Unit = {
    Arrays.fill(addedBytes, 0)
    cursor.write(this)
    if (elements == 0 || elements == blockElements || bytesWithAdded > blockBytes) open()
    elements += 1
    addedBytes.indices.foreach(column => dataBytes(column) += addedBytes(column))
  }

  /** A block holds elements of one partition. */
  def endOfPartition(): Unit = elements = 0

  private def open(): Unit = {
    count += 1
    elements = 0
    Arrays.fill(dataBytes, 0)
  }

  private def bytesWithAdded: Long = headerBytes + schema.columns.indices.map { column =>
    val n = elements + 1L
    val values = formats(column) match {
      case Format.Bits => aligned((n + 7) / 8)
      case Format.Fixed(bytes) => aligned(bytes * n)
      case Format.Variable =>
        aligned(Integer.BYTES * (n + 1)) + aligned(dataBytes(column) + addedBytes(column))
    }
    if (schema.columns(column).nullable) values + aligned((n + 7) / 8) else values
  }.sum

  private def aligned(bytes: Long): Long =
    (bytes + Layout.Constant.BUFFER_ALIGNMENT - 1) & -Layout.Constant.BUFFER_ALIGNMENT

  override def putInt(column: Int, value: Int): Unit = ()

  override def putLong(column: Int, value: Long): Unit = ()

  override def putBoolean(column: Int, value: Boolean): Unit = ()

  override def putNull(column: Int): Unit = ()

  override def reserve(column: Int, bytes: Int): ByteBuffer = {
    addedBytes(column) += bytes
    if (scratch.capacity() < bytes) scratch = ByteBuffer.allocate(bytes)
    scratch.clear().limit(bytes)
  }
}
