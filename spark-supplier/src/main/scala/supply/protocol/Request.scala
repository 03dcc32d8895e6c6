package supply.protocol

import java.nio.ByteBuffer

import supply.protocol.Layout.{Request => At}

/** A message from the rank through the request pipe. */
final case class Request(generation: Long, kind: Int)

object Request {
  def read(from: ByteBuffer, at: Int): Request =
    Request(from.getLong(at + At.generation), from.getInt(at + At.kind))
}
