package supply.pair

import java.nio.{ByteBuffer, ByteOrder}

import scala.collection.mutable.ArrayBuffer

import supply.core.{Buffers, ConfigException, MappingException}
import supply.protocol.Layout.{BlockHeader, Constant, MappedFileHeader => At}

/**
 * The mirror of a rank's header and ring, in memory of this process: what a rank elsewhere has, and what
 * is not sent to it yet. Another thread than the task's stores what the rank releases.
 */
private[pair] final class LinkMemory(link: Link, opening: LinkOpening) extends PairMemory {
  private val mapped = ArrayBuffer.empty[ByteBuffer]
  override val header: ByteBuffer = allocate(Constant.RING_OFFSET)

  /** Empty: the schema is not wide. */
  private var wide = ByteBuffer.allocate(0)

  header.put(0, opening.header, 0, At.SIZE)
  header.putLong(At.released, opening.released)
  header.putLong(At.acknowledged, opening.acknowledged)
  Seq(At.schemaColumns, At.schemaBytes, At.foreignCount, At.endSeen).foreach(header.putInt(_, 0))

  override def size: Long = LinkMemory.MostBytes

  private def allocate(bytes: Int): ByteBuffer = {
    mapped += LinkMemory.direct(bytes)
    mapped.last
  }

  override def map(offset: Long, bytes: Long): ByteBuffer = allocate(bytes.toInt)

  override def writeSchema(bytes: ByteBuffer, offset: Long): Unit = wide = bytes

  override def readSchema(count: Int, offset: Long): ByteBuffer = wide.duplicate()

  /** The entries, and texts, as they lie in the rank's memory. */
  def schema: ByteBuffer =
    if (wide.hasRemaining) wide.duplicate()
    else header.slice(Constant.SCHEMA_OFFSET,
      header.getInt(At.schemaColumns) * supply.protocol.Layout.SchemaEntry.SIZE)

  override def rankLives: Boolean = link.rankLives

  override def lockForTask(): Boolean = true

  override def requireWhole(): Unit = ()

  override def whileWhole[A](body: => A): A = body

  /** The task's end of the link closes it, and then nobody uses the memory. */
  override def close(): Unit = link.close()

  def free(): Unit = mapped.foreach(Buffers.unsafe.invokeCleaner)
}

private[pair] object LinkMemory {
  /** The largest ring that an executor holds for a rank, with its header. */
  private final val MostBytes = (4L << 30) + Constant.RING_OFFSET

  /** Refuses a ring that is too large, or shared. `name`: of the link. */
  def require(name: String, header: ByteBuffer): Unit = {
    val bytes = header.getLong(At.fileBytes)
    if (bytes > MostBytes) throw new ConfigException(
      s"$name: its rank has a ring of $bytes bytes, and by a connection it has at most ${MostBytes >> 30} GiB: make it smaller (SUPPLY_RING)")
    if (header.getInt(At.readers) != 0) throw new ConfigException(
      s"$name: ranks that connect do not share a ring: leave SUPPLY_SHARE out")
  }

  /** Java's own error would end the executor. */
  private def direct(bytes: Int): ByteBuffer =
    try ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN)
    catch {
      case e: OutOfMemoryError => throw new MappingException(
          s"there is no memory for $bytes bytes of the ring of a rank that connects (${e.getMessage}): " +
            "set -XX:MaxDirectMemorySize of the executors higher, or make the rank's ring smaller")
    }
}

/** What LINK_OPEN says. `released`, `acknowledged`: as the task may know them. */
private[pair] final case class LinkOpening(header: Array[Byte], lastBlock: Array[Byte],
    data: String, released: Long, acknowledged: Long) {
  val fields: ByteBuffer = ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN)

  def rank: Int = fields.getInt(At.rank)
  def generation: Long = fields.getLong(At.generation)
  def pid: Int = fields.getInt(At.rankPid)

  /** Blocks that the rank has received, also from earlier attempts. */
  def received: Long = fields.getLong(At.published)
}

private[pair] object LinkOpening {
  /** Bytes of a payload without the name of the data. */
  final val Least = At.SIZE + BlockHeader.SIZE
}
