package supply.testing

import java.io.IOException
import java.net.InetAddress
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.concurrent.ThreadLocalRandom

import scala.collection.mutable.ArrayBuffer

import supply.core.Deadline
import supply.protocol.Layout
import supply.protocol.Layout.{BlockColumn, BlockHeader, Constant, LinkNotice, LinkRequest, MappedFileHeader => At}
import supply.protocol.Layout.{Notification => Fields}

/** A rank elsewhere: its side of proto/PROTOCOL.md, "A pair over a connection", written once more. */
final class LinkRank(val hub: String, key: String, val rank: Int, ranks: Int = 0,
    blocks: Int = 4, blockBytes: Int = 4096) extends AutoCloseable {
  import LinkRank._

  private val LinkRank.Address(secure, host, port, run, data) = (hub: @unchecked)
  private val name = Option(data).map(_.drop(1)).getOrElse("")
  private val digest = MessageDigest.getInstance("SHA-256").digest(key.getBytes(UTF_8))
  val header: ByteBuffer = ByteBuffer.allocate(At.SIZE).order(ByteOrder.LITTLE_ENDIAN)
  header.put(At.magic, Layout.Magic).putInt(At.version, Layout.version)
  header.putInt(At.byteOrder, Constant.BYTE_ORDER_MARK)
  header.putLong(At.generation, 1 + ThreadLocalRandom.current.nextLong(Long.MaxValue - 1))
  header.putLong(At.ringOffset, Constant.RING_OFFSET.toLong)
  header.putLong(At.blockBytes, blockBytes.toLong).putInt(At.blockCount, blocks)
  header.putLong(At.fileBytes, Constant.RING_OFFSET + blocks.toLong * blockBytes)
  header.putInt(At.rankPid, 4711 + rank).putInt(At.rank, rank).putInt(At.localRank, rank)

  private val lastBlock = ByteBuffer.allocate(BlockHeader.SIZE).order(ByteOrder.LITTLE_ENDIAN)
  private var socket: HubSocket = _

  /** Bytes that the connection lets through before it is cut. */
  var budget = Long.MaxValue

  /** What has come, in order. */
  val received = new ArrayBuffer[ByteBuffer]
  var schema: Array[Byte] = _
  var released, acknowledged = 0L

  /** The texts of LINK_KEPT. */
  val kept = new ArrayBuffer[String]

  private def meet(place: (String, Int, Boolean), role: Int): Boolean = {
    close()
    socket = new HubSocket(InetAddress.getByName(place._1), place._2,
      if (place._3) Some("TLSv1.3") else None)
    socket.meets(role, run, digest)
  }

  /** One answer of the hub. */
  def ask(): (Int, String) =
    if (!meet((host, port.toInt, secure != null), HubSocket.Place)) (2, "no such run")
    else {
      socket.out.writeInt(rank)
      socket.out.writeInt(ranks)
      Seq(name, "elsewhere").foreach(socket.out.writeUTF)
      socket.out.flush()
      (socket.in.readUnsignedByte(), socket.in.readUTF())
    }

  /** The place of its task. Throws a Refused if it never gets one. Without data it waits after the end. */
  def place(): (String, Int, Boolean) = {
    var answer = ask()
    while (answer._1 == 2 || answer._1 == 3 && received.isEmpty) {
      Thread.sleep(20)
      answer = ask()
    }
    if (answer._1 == 3 && hasAll) header.putInt(At.endSeen, 1)
    if (answer._1 != 0) throw new Refused(answer._2)
    val Place(at, number, tls) = (answer._2: @unchecked)
    (at, number.toInt, tls != null)
  }

  /** Connects to a task, and sends LINK_OPEN. None: the run is not known there. */
  def open(place: (String, Int, Boolean)): Option[Notice] =
    if (!meet(place, HubSocket.Link)) None
    else {
      send(Constant.LINK_OPEN,
        header.array ++ lastBlock.array ++ name.getBytes(UTF_8))
      Some(next())
    }

  /** Sends one frame there, without LINK_OPEN. */
  def send(place: (String, Int, Boolean), kind: Int, payload: Array[Byte]): Unit = {
    assert(meet(place, HubSocket.Link))
    send(kind, payload)
  }

  def isEnded: Boolean = socket.isEnded

  def send(kind: Int, payload: Array[Byte] = Array.empty, length: Option[Int] = None): Unit = {
    val head = ByteBuffer.allocate(LinkRequest.SIZE).order(ByteOrder.LITTLE_ENDIAN)
    head.putInt(LinkRequest.kind, kind)
    head.putInt(LinkRequest.payloadBytes, length.getOrElse(payload.length))
    head.putLong(LinkRequest.released, released).putLong(LinkRequest.acknowledged, acknowledged)
    socket.out.write(head.array)
    socket.out.write(payload)
    socket.out.flush()
  }

  private def read(count: Int): ByteBuffer = {
    val bytes = socket.bytes(math.min(budget, count.toLong).toInt)
    budget -= bytes.length
    if (bytes.length < count) {
      budget = Long.MaxValue
      socket.kill()
      throw new IOException("cut")
    }
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN)
  }

  def next(): Notice = {
    val head = read(LinkNotice.SIZE)
    Notice(head.getInt(LinkNotice.kind), read(head.getInt(LinkNotice.payloadBytes)))
  }

  /** Takes a notice of a task that has accepted it. False: it leaves. */
  def take(notice: Notice): Boolean = {
    import notice.payload
    notice.kind match {
      case Constant.LINK_SCHEMA => schema = payload.array
      case Constant.LINK_HEADER =>
        assert(payload.limit() == At.SIZE)
        assert(payload.getLong(At.published) <= received.size)
        if (payload.getInt(At.schemaColumns) != 0) assert(schema != null)
        Seq(At.plan, At.run).foreach(at => header.putLong(at, payload.getLong(at)))
        Seq(At.attachments, At.endSeen, At.countsKnown).foreach(at =>
          header.putInt(at, payload.getInt(at)))
      case Constant.LINK_BLOCK =>
        assert(payload.getLong(Fields.sequence) == received.size)
        assert(payload.getLong(Fields.generation) == header.getLong(At.generation))
        assert(payload.getLong(Fields.size) == payload.limit() && payload.limit() <= blockBytes)
        assert(received.size < released + blocks)
        received += payload
        lastBlock.put(0, payload, 0, BlockHeader.SIZE)
        header.putLong(At.published, received.size.toLong)
      case Constant.LINK_KEPT => kept += notice.text
      case Constant.LINK_LEFT => return false
      case other => throw new IllegalStateException(s"a notice of kind $other")
    }
    true
  }

  /** Releases all that it has, or so much. */
  def release(until: Long = received.size.toLong): Unit = {
    released = until
    header.putLong(At.released, until)
    if (received.nonEmpty && kindOf(received.last) == Constant.NOTIFICATION_END_OF_EPOCH) {
      acknowledged = received.size.toLong
      header.putLong(At.acknowledged, acknowledged)
    }
    send(Constant.LINK_CREDIT)
  }

  def hasAll: Boolean =
    received.nonEmpty && kindOf(received.last) == Constant.NOTIFICATION_END_OF_DATA

  def isEndSeen: Boolean = header.getInt(At.endSeen) != 0

  /**
   * Takes everything, over as many connections as that needs. `cuts`: after how many bytes each is cut;
   * `atEnd`: is done before END_OF_DATA is released.
   */
  def drain(cuts: Iterator[Long] = Iterator.empty, atEnd: () => Unit = () => ()): this.type = {
    val limit = new Deadline(60)
    while (!isEndSeen) {
      assert(!limit.passed, "it has not received everything within a minute")
      try open(place()) match {
          case Some(Notice(Constant.LINK_ACCEPTED, _)) =>
            budget = if (cuts.hasNext) cuts.next() else Long.MaxValue
            if (!hasAll && received.size > released) release()
            if (hasAll) finish(atEnd)
            while (take(next())) {
              if (hasAll && released < received.size) finish(atEnd)
              else if (received.size > released) release()
            }
          case Some(refused @ Notice(Constant.LINK_REFUSED, _)) => throw new Refused(refused.text)
          case _ => Thread.sleep(20)
        }
      catch {
        case _: IOException => Thread.sleep(20)
        case _: Refused if isEndSeen => ()
      }
      budget = Long.MaxValue
    }
    this
  }

  private def finish(atEnd: () => Unit): Unit = {
    atEnd()
    release()
  }

  /** Sends a result. */
  def result(name: String, bytes: Array[Byte]): String = {
    send(Constant.LINK_RESULT, name.getBytes(UTF_8))
    bytes.grouped(1000).foreach(send(Constant.LINK_RESULT_BYTES, _))
    answer(Constant.LINK_RESULT_SEAL)
  }

  /** Ends a result, and waits for the answer. */
  def answer(kind: Int, text: String = ""): String = {
    val before = kept.size
    send(kind, text.getBytes(UTF_8))
    while (kept.size == before) assert(take(next()))
    kept.last
  }

  /** Whole ones. */
  def epochs: Int = received.count(kindOf(_) == Constant.NOTIFICATION_END_OF_EPOCH)

  /** Of the blocks with elements: values of the columns `id` (bigint) and, if it is there, `label` (string). */
  def rows: Seq[Seq[Any]] =
    received.toSeq.filter(kindOf(_) == Constant.NOTIFICATION_BLOCK).flatMap(rowsOf)

  def kill(): Unit = if (socket != null) socket.kill()

  override def close(): Unit = if (socket != null) socket.close()
}

object LinkRank {
  private val Address = "supply(s)?://([^:/]+):([0-9]+)/([^/]+)(/.*)?".r
  private val Place = "([^/]+):([0-9]+)(/tls)?".r

  final case class Notice(kind: Int, payload: ByteBuffer) {
    def text: String = new String(payload.array, UTF_8)
  }

  /** The rank gets nothing more. */
  final class Refused(text: String) extends RuntimeException(text)

  private def kindOf(block: ByteBuffer) = block.getInt(Fields.kind)

  private def rowsOf(block: ByteBuffer): Seq[Seq[Any]] = {
    val columns = block.getInt(BlockHeader.columnCount)
    def at(column: Int, field: Int) =
      block.getInt(BlockHeader.SIZE + column * BlockColumn.SIZE + field)
    (0 until block.getInt(Fields.elementCount)).map { i =>
      val id = block.getLong(at(0, BlockColumn.dataOffset) + 8 * i)
      if (columns == 1) Seq(id)
      else {
        val offsets = at(1, BlockColumn.offsetsOffset) + 4 * i
        val (from, until) = (block.getInt(offsets), block.getInt(offsets + 4))
        Seq(id, new String(block.array, at(1, BlockColumn.dataOffset) + from, until - from, UTF_8))
      }
    }
  }
}
