package supply.protocol

/** Offsets, sizes and constants of proto/PROTOCOL.md, and numbers made of them. */
private[supply] object Layout extends LayoutTable {
  /** "SUPPLY\r\n": a transfer as text changes the line end. */
  val Magic: Array[Byte] = "SUPPLY\r\n".getBytes("US-ASCII")

  /** "SUPBLK\r\n": no reader takes a block file for a pair. */
  val BlockFileMagic: Array[Byte] = "SUPBLK\r\n".getBytes("US-ASCII")

  /** Bytes of each of the two failure texts, with the zero byte at the end. */
  final val FailureTextBytes = MappedFileHeader.rankFailure - MappedFileHeader.taskFailure

  def version: Int = Constant.VERSION_MAJOR << 16 | Constant.VERSION_MINOR

  def versionText(version: Int): String = s"${version >>> 16}.${version & 0xffff}"

  def isBlockBytes(bytes: Long): Boolean = bytes >= Constant.BLOCK_BYTES_UNIT &&
    bytes <= Constant.BLOCK_BYTES_MAX && bytes % Constant.BLOCK_BYTES_UNIT == 0

  /** Bytes of a block header with the column table, as a multiple of the buffer alignment. */
  def blockHeaderBytes(columns: Int): Int = aligned(BlockHeader.SIZE + columns * BlockColumn.SIZE)

  /** The next multiple of the buffer alignment. */
  def aligned(bytes: Int): Int =
    (bytes + Constant.BUFFER_ALIGNMENT - 1) & -Constant.BUFFER_ALIGNMENT
}
