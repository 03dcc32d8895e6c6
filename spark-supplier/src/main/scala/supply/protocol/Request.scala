package supply.protocol

import java.nio.ByteBuffer

import supply.protocol.Layout.{Request => At}

/** A message from the rank through the request pipe. */
private[supply] final case class Request(generation: Long, kind: Int)

private[supply] object Request {
  def read(from: ByteBuffer, at: Int): Request =
    Request(from.getLong(at + At.generation), from.getInt(at + At.kind))
}
