package supply.results

import java.nio.file.Path

import supply.core.ContractException
import supply.protocol.{Column, Format, Layout}
import supply.protocol.Layout.{BlockColumn => In, BlockHeader, Constant, Notification => At}

/**
 * Checks block `index` of a file as a rank checks a block (R3 of proto/PROTOCOL.md), all but the
 * values: [[MappedColumn]] checks the offsets of the elements that are read. Each number is read
 * once, so a later change of the file cannot undo the check.
 */
private[results] final class BlockCheck(path: Path, header: BlockFileHeader, index: Int,
    address: Long) {
  private val memory = new MappedMemory(s"$path: block $index")
  private val space = header.spaceOf(index)
  private val isLast = index == header.blockCount - 1
  private var size = 0L
  private var elements = 0L

  def block(firstElement: Long): Block = {
    if (space < Layout.blockHeaderBytes(header.schema.entries.size))
      refuse(s"has $space bytes, fewer than its header and column table")
    checkHeader(firstElement)
    val columns = header.schema.columns.zipWithIndex.map { case (column, i) =>
      buffers(column, address + BlockHeader.SIZE + i * In.SIZE)
    }
    new Block(elements.toInt, columns)
  }

  private def checkHeader(firstElement: Long): Unit = {
    must("generation", long(At.generation), header.generation)
    must("kind", int(At.kind), Constant.NOTIFICATION_BLOCK)
    must("sequence", long(At.sequence), index)
    must("epoch", int(At.epoch), 0)
    must("partition", int(At.partition), 0)
    must("first_element", long(At.firstElement), firstElement)
    must("offset", long(At.offset), header.blockOffset(index))
    must("column_count", int(BlockHeader.columnCount), header.schema.entries.size)
    size = long(At.size)
    if (isLast && size != space)
      refuse(s"size is $size, and up to file_bytes there are $space bytes")
    if (size < BlockHeader.SIZE || size > space) refuse("size", size, s"at most $space")
    elements = int(At.elementCount)
    val rest = header.elements - firstElement
    if (elements < 1 || elements > Int.MaxValue)
      refuse("element_count", elements, s"1 to ${Int.MaxValue}")
    if (elements > rest || (isLast && elements < rest))
      refuse(s"element_count is $elements, and epoch_elements of the header leaves $rest")
  }

  private def buffers(column: Column, entry: Long): ColumnBuffers = {
    def field(at: Int): Long = unsigned(entry + at)
    val format = Format.of(column)
    val validityBytes = field(In.validityBytes)
    if (validityBytes != 0) must(column, "validity_bytes", validityBytes, bitmapBytes)
    val nulls = field(In.nullCount)
    if (nulls > (if (validityBytes == 0) 0 else elements))
      refuse(s"column '${column.name}': null_count is $nulls of $elements elements")
    val offsetsBytes = field(In.offsetsBytes)
    must(column, "offsets_bytes", offsetsBytes,
      if (format == Format.Variable) (elements + 1) * Integer.BYTES else 0)
    val dataBytes = field(In.dataBytes)
    format match {
      case Format.Bits => must(column, "data_bytes", dataBytes, bitmapBytes)
      case Format.Fixed(bytes) => must(column, "data_bytes", dataBytes, elements * bytes)
      case Format.Variable => ()
      case _ =>
        refuse(s"column '${column.name}' has views, and a result has its own values")
    }
    def place(name: String, at: Int, bytes: Long): Long = {
      val offset = field(at)
      if (offset % Constant.BUFFER_ALIGNMENT != 0)
        refuse(
          s"column '${column.name}': $name is $offset, no multiple of ${Constant.BUFFER_ALIGNMENT}")
      // Nobody reads an empty buffer: its offset does not matter.
      if (bytes > 0 && offset < Layout.blockHeaderBytes(header.schema.entries.size))
        refuse(s"column '${column.name}': $name is $offset, inside the block's header")
      if (offset + bytes > size)
        refuse(
          s"column '${column.name}': $name is $offset, with $bytes bytes, outside the block's size of $size")
      address + offset
    }
    val validity = place("validity_offset", In.validityOffset, validityBytes)
    val offsets = place("offsets_offset", In.offsetsOffset, offsetsBytes)
    val data = place("data_offset", In.dataOffset, dataBytes)
    new ColumnBuffers(s"$path: block $index, column '${column.name}'", memory, column,
      elements.toInt,
      nulls.toInt, if (validityBytes == 0) 0 else validity, offsets, data, dataBytes.toInt)
  }

  private def bitmapBytes: Long = (elements + 7) / 8

  private def int(at: Int): Long = unsigned(address + at)

  private def long(at: Int): Long = memory.long(address + at)

  private def unsigned(address: Long): Long = memory.int(address) & 0xffffffffL

  private def must(column: Column, field: String, is: Long, expected: Long): Unit =
    must(s"column '${column.name}': $field", is, expected)

  private def must(field: String, is: Long, expected: Long): Unit =
    if (is != expected) refuse(field, is, expected.toString)

  private def refuse(field: String, is: Long, expected: String): Nothing =
    refuse(s"$field is $is, must be $expected")

  private def refuse(what: String): Nothing =
    throw new ContractException(s"$path: block $index: $what")
}

/** A checked block: its elements, and the buffers of each column of the schema. */
private[supply] final class Block private[results] (
    val elements: Int, private[results] val columns: IndexedSeq[ColumnBuffers]) {
  /** A column for Spark. The memory is the file's, so the vector has nothing to close. */
  def vector(column: Int): MappedColumn = MappedColumn(columns(column))
}

/**
 * Where the values of one column of a block lie.
 *
 * @param where file, block and column, for messages
 * @param validity address of the bitmap; 0: no element is null
 */
private[results] final class ColumnBuffers(
    val where: String,
    val memory: MappedMemory,
    val column: Column,
    val elements: Int,
    val nullCount: Int,
    val validity: Long,
    val offsets: Long,
    val data: Long,
    val dataBytes: Int)
