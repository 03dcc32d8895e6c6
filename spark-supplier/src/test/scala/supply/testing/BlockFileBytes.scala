package supply.testing

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, StandardCopyOption}
import java.nio.file.attribute.PosixFilePermissions

import supply.protocol.{Column, Format, Layout, Notification, Schema, Text}
import supply.protocol.Layout.{BlockColumn, BlockHeader, Constant, MappedFileHeader => At}

/**
 * The bytes of a block file, as a rank writes them. Each block has the values of each column: null,
 * a Boolean, a Number, a String, a BigInt for a decimal, an Array[Byte], or a Seq for a list.
 */
object BlockFileBytes {
  final val Generation = 0x0102030405060708L

  def apply(schema: Schema, blocks: Seq[Seq[Seq[Any]]], rank: Int = 0,
      generation: Long = Generation, blockBytes: Int = 4096, run: Long = 0): Array[Byte] = {
    val encoded = blocks.map(values => block(schema, values))
    encoded.foreach { bytes =>
      ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN)
        .putInt(BlockHeader.columnCount, schema.columns.size)
    }
    file(schema, encoded, blocks.map(_.head.size), rank, generation, blockBytes, run)
  }

  /** With these blocks, which a task has written. */
  def ofBlocks(schema: Schema, blocks: Seq[Array[Byte]], rank: Int = 0): Array[Byte] = {
    val elements = blocks.map(
      ByteBuffer.wrap(_).order(ByteOrder.LITTLE_ENDIAN).getInt(Layout.Notification.elementCount))
    file(schema, blocks, elements, rank, Generation, blockBytes = 64 << 10, run = 0)
  }

  private def file(schema: Schema, encoded: Seq[Array[Byte]], elements: Seq[Int], rank: Int,
      generation: Long, blockBytes: Int, run: Long): Array[Byte] = {
    encoded.foreach(bytes =>
      require(bytes.length <= blockBytes, s"a block has ${bytes.length} bytes"))
    val ringOffset = schema.blockFileRingOffset.toInt
    val size = if (encoded.isEmpty) ringOffset
    else ringOffset + (encoded.size - 1) * blockBytes + encoded.last.length
    val file = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN)
    file.put(At.magic, Layout.BlockFileMagic)
    file.putInt(At.version, Layout.version)
    file.putInt(At.byteOrder, Constant.BYTE_ORDER_MARK)
    file.putLong(At.generation, generation)
    file.putLong(At.fileBytes, size)
    file.putLong(At.ringOffset, ringOffset)
    file.putLong(At.blockBytes, blockBytes)
    file.putInt(At.blockCount, encoded.size)
    file.putInt(At.rank, rank)
    file.putLong(At.published, encoded.size)
    file.putLong(At.run, run)
    file.putInt(At.schemaColumns, schema.entries.size)
    file.putLong(At.epochElements, elements.map(_.toLong).sum)
    file.putInt(At.fileUse, Constant.FILE_USE_RESULT)
    file.putInt(At.`sealed`, Constant.SEALED_COMPLETE)
    schema.writeHeader(file)
    if (schema.isWide) file.put(Constant.RING_OFFSET, schema.toBytes.array)
    var first = 0L
    encoded.zip(elements).zipWithIndex.foreach { case ((bytes, count), i) =>
      val at = ringOffset + i * blockBytes
      file.put(at, bytes)
      Notification(generation, Constant.NOTIFICATION_BLOCK, count, i.toLong, 0, 0, first,
        at.toLong, bytes.length.toLong).write(file, at)
      first += count
    }
    file.array
  }

  /** An unsealed file of a rank that aborted. */
  def aborted(bytes: Array[Byte], reason: String): Array[Byte] = {
    val file = ByteBuffer.wrap(bytes.clone).order(ByteOrder.LITTLE_ENDIAN)
    file.putInt(At.`sealed`, Constant.SEALED_ABORTED)
    Text.write(file, At.rankFailure, Layout.FailureTextBytes, reason)
    file.array
  }

  /** Writes it as a rank does: for its own user alone, complete when it has its name. */
  def write(path: Path, bytes: Array[Byte]): Path = {
    val partial = path.resolveSibling(s"${path.getFileName}.partial")
    Files.write(partial, bytes)
    Files.setPosixFilePermissions(partial, PosixFilePermissions.fromString("rw-------"))
    Files.move(partial, path, StandardCopyOption.ATOMIC_MOVE)
  }

  private def block(schema: Schema, values: Seq[Seq[Any]]): Array[Byte] = {
    val bytes = ByteBuffer.allocate(1 << 20).order(ByteOrder.LITTLE_ENDIAN)
    var end = Layout.blockHeaderBytes(schema.columns.size)
    def put(entry: Int, buffer: Array[Byte]): Unit = {
      bytes.putInt(entry, end)
      bytes.putInt(entry + Integer.BYTES, buffer.length)
      bytes.put(end, buffer)
      end = Layout.aligned(end + buffer.length)
    }
    schema.columns.zip(values).zipWithIndex.foreach { case ((column, of), i) =>
      val entry = BlockHeader.SIZE + i * BlockColumn.SIZE
      if (of.contains(null))
        put(entry + BlockColumn.validityOffset, bits(of.map(_ != null)))
      if (Format.of(column) == Format.Variable) {
        val texts = of.map(bytesOf)
        put(entry + BlockColumn.offsetsOffset,
          texts.scanLeft(0)(_ + _.length).flatMap(number(_, 4)).toArray)
        put(entry + BlockColumn.dataOffset, texts.flatten.toArray)
      } else put(entry + BlockColumn.dataOffset, data(column, of))
      bytes.putInt(entry + BlockColumn.nullCount, of.count(_ == null))
    }
    bytes.array.take(end)
  }

  private def data(column: Column, values: Seq[Any]): Array[Byte] = Format.of(column) match {
    case Format.Fixed(width) => values.flatMap {
        case null => Seq.fill[Byte](width)(0)
        case list: Seq[_] => list.flatMap(number(_, width / list.size))
        case other => number(other, width).toSeq
      }.toArray
    case _ => bits(values.map(_ == true))
  }

  private def bits(of: Seq[Boolean]): Array[Byte] =
    of.grouped(8).map(
      _.zipWithIndex.map { case (bit, i) => if (bit) 1 << i else 0 }.sum.toByte).toArray

  private def bytesOf(value: Any): Array[Byte] = value match {
    case null => Array.emptyByteArray
    case text: String => text.getBytes(UTF_8)
    case bytes: Array[Byte] => bytes
    case other => sys.error(s"no bytes: $other")
  }

  private def number(value: Any, bytes: Int): Array[Byte] = value match {
    case float: Float => number(java.lang.Float.floatToRawIntBits(float), bytes)
    case double: Double => number(java.lang.Double.doubleToRawLongBits(double), bytes)
    case big: BigInt => Array.tabulate(bytes)(i => (big >> (8 * i)).toByte)
    case integer: Number => number(BigInt(integer.longValue), bytes)
    case other => sys.error(s"no number: $other")
  }
}
