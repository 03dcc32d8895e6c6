package supply.bench

import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.ISO_8859_1

import supply.lmdb.Datum

/**
 * Sends the same elements over a loopback socket, in the frames that bench/c/tcp_consumer.c reads:
 * one write per element, as Alchemist sends rows, or writes of 1 MiB.
 */
private[bench] final class TcpBaseline(
    port: Int, cached: CachedElements, rowByRow: Boolean) extends Baseline {
  private val consumer = new Consumer(port)
  private val (count, bytes) = (cached.count, cached.bytes)
  private val buffer = {
    val largest = cached.partitions.iterator.flatMap(_.iterator).map(t =>
      TcpBaseline.HeaderBytes + t._1.length + t._7.length).max
    val capacity =
      if (rowByRow) math.max(largest, TcpBaseline.HeaderBytes) else TcpBaseline.ChunkBytes
    ByteBuffer.allocateDirect(capacity).order(ByteOrder.LITTLE_ENDIAN)
  }

  override def measure(): Measured = {
    val meter = new Meter
    cached.partitions.foreach(_.foreach(send))
    if (buffer.remaining() < TcpBaseline.HeaderBytes) consumer.send(buffer)
    header(TcpBaseline.EndOfRound, 0, 0, 0, 0, 0, 0)
    consumer.send(buffer)
    consumer.awaitRead()
    meter.measured(count, bytes)
  }

  private def send(tuple: Datum.Tuple): Unit = {
    val (key, label, channels, height, width, encoded, data) = tuple
    if (buffer.remaining() < TcpBaseline.HeaderBytes + key.length) consumer.send(buffer)
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

private[bench] object TcpBaseline {
  final val ChunkBytes = 1 << 20
  final val HeaderBytes = 7 * 4
  final val EndOfRound = -1
}
