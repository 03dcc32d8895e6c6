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
  private val headerBytes = Layout.blockHeaderBytes(header.schema.entries.size)
  private val isLast = index == header.blockCount - 1
  private var size = 0L
  private var elements = 0L

  /** Where the next entry of the block's table lies. */
  private var next = address + BlockHeader.SIZE

  def block(firstElement: Long): Block = {
    if (space < headerBytes)
      refuse(s"has $space bytes, fewer than its header and column table")
    checkHeader(firstElement)
    new Block(elements.toInt,
      header.schema.columns.map(column => buffers(column, column.name, elements)))
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

  /** Of a column, or of a child, with `elements` elements; `name`: its path, for messages. */
  private def buffers(column: Column, name: String, elements: Long): ColumnBuffers = {
    val entry = next
    next += In.SIZE
    def field(at: Int): Long = unsigned(entry + at)
    def must(what: String, is: Long, expected: Long): Unit =
      if (is != expected) this.must(s"column '$name': $what", is, expected)
    val bitmapBytes = (elements + 7) / 8
    val format = Format.of(column)
    val hasOffsets = format == Format.Variable || format == Format.Lists
    val validityBytes = field(In.validityBytes)
    if (validityBytes != 0) must("validity_bytes", validityBytes, bitmapBytes)
    val nulls = field(In.nullCount)
    if (nulls > (if (validityBytes == 0) 0 else elements))
      refuse(s"column '$name': null_count is $nulls of $elements elements")
    val offsetsBytes = field(In.offsetsBytes)
    must("offsets_bytes", offsetsBytes,
      if (hasOffsets) (elements + 1) * Integer.BYTES else 0)
    val dataBytes = field(In.dataBytes)
    format match {
      case Format.Bits => must("data_bytes", dataBytes, bitmapBytes)
      case Format.Fixed(bytes) => must("data_bytes", dataBytes, elements * bytes)
      case Format.Variable => ()
      case Format.Struct | Format.Lists | Format.FixedLists(_) => must("data_bytes", dataBytes, 0)
      case Format.Views =>
        refuse(s"column '$name' has views, and a result has its own values")
    }
    def place(buffer: String, at: Int, bytes: Long): Long = {
      val offset = field(at)
      if (offset % Constant.BUFFER_ALIGNMENT != 0)
        refuse(
          s"column '$name': $buffer is $offset, no multiple of ${Constant.BUFFER_ALIGNMENT}")
      // Nobody reads an empty buffer: its offset does not matter.
      if (bytes > 0 && offset < headerBytes)
        refuse(s"column '$name': $buffer is $offset, inside the block's header")
      if (offset + bytes > size)
        refuse(
          s"column '$name': $buffer is $offset, with $bytes bytes, outside the block's size of $size")
      address + offset
    }
    val validity = place("validity_offset", In.validityOffset, validityBytes)
    val offsets = place("offsets_offset", In.offsetsOffset, offsetsBytes)
    val data = place("data_offset", In.dataOffset, dataBytes)
    val within = format match {
      case Format.FixedLists(count) => elements * count
      case Format.Lists => memory.int(offsets + Integer.BYTES * elements).toLong
      case _ => elements
    }
    if (within < 0 || within > Int.MaxValue)
      refuse(s"column '$name' has $within elements within it, must be 0 to ${Int.MaxValue}")
    val children =
      column.children.map(child => buffers(child, s"$name.${child.name}", within))
    new ColumnBuffers(where(name), memory, column, elements.toInt,
      nulls.toInt, if (validityBytes == 0) 0 else validity, offsets, data, dataBytes.toInt,
      children)
  }

  private def where(name: String): () => String = {
    val (path, index) = (this.path, this.index)
    () => s"$path: block $index, column '$name'"
  }

  private def int(at: Int): Long = unsigned(address + at)

  private def long(at: Int): Long = memory.long(address + at)

  private def unsigned(address: Long): Long = memory.int(address) & 0xffffffffL

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
 * @param toWhere file, block and column, for messages: a text for each would cost more than the check
 * @param validity address of the bitmap; 0: no element is null
 */
private[results] final class ColumnBuffers(
    val toWhere: () => String,
    val memory: MappedMemory,
    val column: Column,
    val elements: Int,
    val nullCount: Int,
    val validity: Long,
    val offsets: Long,
    val data: Long,
    val dataBytes: Int,
    val children: IndexedSeq[ColumnBuffers]) {
  def where: String = toWhere()
}
