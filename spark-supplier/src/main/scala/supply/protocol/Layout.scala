package supply.protocol

/** Offsets, sizes and constants of proto/PROTOCOL.md. LayoutSuite compares proto/layout.tsv. */
private[supply] object Layout {
  object MappedFileHeader {
    final val magic = 0
    final val version = 8
    final val byteOrder = 12
    final val generation = 16
    final val fileBytes = 24
    final val ringOffset = 32
    final val blockBytes = 40
    final val blockCount = 48
    final val rankPid = 52
    final val rank = 56
    final val localRank = 60
    final val released = 64
    final val startEpoch = 72
    final val startInside = 76
    final val startPartition = 80
    final val startElement = 88
    final val startPlan = 96
    final val acknowledged = 104
    final val accepts = 112
    final val published = 128
    final val taskPid = 136
    final val taskAttempt = 140
    final val schemaColumns = 144
    final val schemaBytes = 148
    final val plan = 152
    final val endSeen = 160
    final val residentFirst = 168
    final val residentCount = 176
    final val run = 184
    final val epochElements = 192
    final val epochSteps = 200
    final val countsKnown = 208
    final val exchange = 212
    final val taskNamespace = 216
    final val foreignCount = 220
    final val exchangeSeed = 232
    final val exchangeFraction = 240
    final val fileUse = 244
    final val `sealed` = 248
    final val taskFailure = 256
    final val rankFailure = 1280
    final val SIZE = 4096
  }

  object SchemaEntry {
    final val name = 0
    final val format = 128
    final val childFormat = 160
    final val flags = 176
    final val children = 180
    final val nameOffset = 184
    final val nameBytes = 188
    final val SIZE = 192
  }

  object ForeignFile {
    final val path = 0
    final val device = 400
    final val inode = 408
    final val fileBytes = 416
    final val modified = 424
    final val SIZE = 448
  }

  object Notification {
    final val generation = 0
    final val kind = 8
    final val elementCount = 12
    final val sequence = 16
    final val epoch = 24
    final val partition = 28
    final val firstElement = 32
    final val offset = 40
    final val size = 48
    final val file = 56
    final val reserved = 60
    final val SIZE = 64
  }

  object Request {
    final val generation = 0
    final val kind = 8
    final val reserved = 12
    final val SIZE = 16
  }

  object BlockHeader {
    final val notification = 0
    final val columnCount = 64
    final val elementsBefore = 72
    final val bytesBefore = 80
    final val replaySequence = 88
    final val replayBlock = 96
    final val replayEpoch = 104
    final val referencedBytes = 108
    final val replayElementsBefore = 112
    final val replayBytesBefore = 120
    final val SIZE = 128
  }

  object BlockColumn {
    final val validityOffset = 0
    final val validityBytes = 4
    final val offsetsOffset = 8
    final val offsetsBytes = 12
    final val dataOffset = 16
    final val dataBytes = 20
    final val nullCount = 24
    final val reserved = 28
    final val SIZE = 32
  }

  object Window {
    final val file = 0
    final val offset = 8
    final val windowBytes = 16
    final val SIZE = 24
  }

  object View {
    final val valueBytes = 0
    final val start = 4
    final val window = 8
    final val offset = 12
    final val SIZE = 16
  }

  object Constant {
    final val VERSION_MAJOR = 1
    final val VERSION_MINOR = 3
    final val BYTE_ORDER_MARK = 0x01020304
    final val SCHEMA_OFFSET = 4096
    final val SCHEMA_COLUMNS_MAX = 320
    final val SCHEMA_ENTRIES_MAX = 32768
    final val SCHEMA_BYTES_MAX = 16777216
    final val NAME_BYTES_MAX = 65535
    final val NESTING_MAX = 32
    final val RING_OFFSET = 65536
    final val FOREIGN_FILES_OFFSET = 2304
    final val FOREIGN_FILES_MAX = 4
    final val BLOCK_BYTES_UNIT = 4096
    final val BLOCK_BYTES_MAX = 1 << 30
    final val BLOCK_COUNT_MIN = 2
    final val BUFFER_ALIGNMENT = 64
    final val WINDOW_BYTES_MAX = 2147483647
    final val VIEW_INLINE_MAX = 12
    final val ACCEPTS_REFERENCES = 1
    final val ACCEPTS_BLOCK_FILES = 2
    final val ACCEPTS_EXCHANGE = 4
    final val ACCEPTS_CHILDREN = 8
    final val ACCEPTS_WIDE_SCHEMA = 16
    final val EXCHANGE_ALL = 1
    final val EXCHANGE_FRACTION_UNIT = 1000000
    final val RANK_LOCK_BYTE = 0
    final val TASK_LOCK_BYTE = 1
    final val REMOVER_LOCK_BYTE = 2
    final val READER_LOCK_BYTE = 1
    final val FILE_USE_PAIR = 0
    final val FILE_USE_RESIDENT = 1
    final val FILE_USE_RESULT = 2
    final val SEALED_COMPLETE = 1
    final val SEALED_ABORTED = 2
    final val NOTIFICATION_BLOCK = 1
    final val NOTIFICATION_END_OF_EPOCH = 2
    final val NOTIFICATION_END_OF_DATA = 3
    final val NOTIFICATION_FAILURE = 4
    final val REQUEST_ATTACH = 1
    final val REQUEST_RELEASE = 2
    final val REQUEST_STOP = 3
    final val COLUMN_NULLABLE = 1
  }

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
