package supply.bench

import java.io.IOException
import java.net.{InetAddress, InetSocketAddress}
import java.nio.ByteBuffer
import java.nio.channels.SocketChannel

/** Sends to the consumer of an alternative over a loopback socket (bench/c/connection.h). */
private[bench] final class Consumer(port: Int) extends AutoCloseable {
  private val channel =
    SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress, port))
  channel.setOption[java.lang.Boolean](java.net.StandardSocketOptions.TCP_NODELAY, true)
  private val acknowledgement = ByteBuffer.allocateDirect(1)

  /** Sends the bytes up to the buffer's position, and clears the buffer. */
  def send(buffer: ByteBuffer): Unit = {
    buffer.flip()
    while (buffer.hasRemaining) channel.write(buffer)
    buffer.clear()
    ()
  }

  /** Waits until the consumer has read the whole round. */
  def awaitRead(): Unit = {
    acknowledgement.clear()
    if (channel.read(acknowledgement) != 1)
      throw new IOException("the consumer has gone: see its message above")
  }

  override def close(): Unit = channel.close()
}
