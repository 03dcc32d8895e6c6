package supply.bench

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.ISO_8859_1

import supply.sources.Datum

/**
 * The same elements over a loopback socket, framed as c/tcp_consumer.c reads them: one write an
 * element, as Alchemist sends rows, or in writes of 1 MiB.
 */
private[bench] final class TcpPeer(
    port: Int, cached: CachedElements, rowByRow: Boolean) extends Limit {
  private val consumer = new Consumer(port)
  private val (count, bytes) = (cached.count, cached.bytes)
  private val buffer = {
    val largest = cached.partitions.iterator.flatMap(_.iterator).map(t =>
      TcpPeer.HeaderBytes + t._1.length + t._7.length).max
    val capacity = if (rowByRow) math.max(largest, TcpPeer.HeaderBytes) else TcpPeer.ChunkBytes
    ByteBuffer.allocateDirect(capacity).order(ByteOrder.LITTLE_ENDIAN)
  }

  override def measure(): Measured = {
    val meter = new Meter
    cached.partitions.foreach(_.foreach(send))
    if (buffer.remaining() < TcpPeer.HeaderBytes) consumer.send(buffer)
    header(TcpPeer.EndOfRound, 0, 0, 0, 0, 0, 0)
    consumer.send(buffer)
    consumer.awaitRead()
    meter.measured(count, bytes)
  }

  private def send(tuple: Datum.Tuple): Unit = {
    val (key, label, channels, height, width, encoded, data) = tuple
    if (buffer.remaining() < TcpPeer.HeaderBytes + key.length) consumer.send(buffer)
    header(data.length, key.length, label.toInt, channels, height, width, if (encoded) 1 else 0)
    buffer.put(key.getBytes(ISO_8859_1))
    var sent = 0
    while (sent < data.length) {
      if (!buffer.hasRemaining) consumer.send(buffer)
      val n = math.min(buffer.remaining(), data.length - sent)
      buffer.put(data, sent, n)
      sent += n
    }
    if (rowByRow) consumer.send(buffer)
  }

  private def header(values: Int*): Unit = values.foreach(buffer.putInt)

  override def close(): Unit = consumer.close()
}

private[bench] object TcpPeer {
  final val ChunkBytes = 1 << 20
  final val HeaderBytes = 7 * 4
  final val EndOfRound = -1
}
