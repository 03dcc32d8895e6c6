package supply.run

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream, IOException}

import scala.collection.mutable

import supply.core.ConfigException

/** A part of a message of the peer with that number, or to it: docs/design/hub.md has its bytes. */
private[run] final case class Piece(peer: Int, flag: Int, bytes: Array[Byte]) {
  /** What it takes in memory, about. */
  def cost: Long = bytes.length + Piece.Overhead

  /** As a client reads and writes it. */
  def write(out: DataOutputStream): Unit = {
    out.writeInt(peer)
    writeToPeer(out)
  }

  /** As the peer itself reads and writes it. */
  def writeToPeer(out: DataOutputStream): Unit = {
    out.writeByte(flag)
    out.writeInt(bytes.length)
    out.write(bytes)
  }
}

private[supply] object Piece {
  /** The last one of a message. */
  final val Last = 0

  /** More pieces of the message follow. */
  final val More = 1

  /** The peer is gone; from the client: it must go. */
  final val Gone = 2

  /** The peer has come. */
  final val Come = 3

  private final val MaxBytes = 1 << 20
  private final val Overhead = 64L

  /** A longer one is passed on in several, so that a connection that stalls in it holds no more. */
  private final val MaxPassed = 64 << 10

  private[run] val Empty = new Array[Byte](0)

  /**
   * Reads one piece of that peer, with at most that flag, and passes it on. Throws an IOException if
   * it is none.
   */
  private[run] def read(in: DataInputStream, peer: Int, maxFlag: Int)(pass: Piece => Unit): Unit = {
    val flag = in.readUnsignedByte()
    var left = in.readInt()
    if (flag > maxFlag || left < 0 || left > MaxBytes)
      throw new IOException(s"a piece with the flag $flag and $left bytes")
    while (left > MaxPassed) {
      pass(Piece(peer, More, bytes(in, MaxPassed)))
      left -= MaxPassed
    }
    pass(Piece(peer, flag, bytes(in, left)))
  }

  /** Reads what a client sends to a peer. */
  private[run] def readFromClient(in: DataInputStream)(pass: Piece => Unit): Unit =
    read(in, in.readInt(), Gone)(pass)

  /** All that a client sends. Throws an IOException if they are no whole pieces. */
  private[run] def allFromClient(bytes: Array[Byte]): Seq[Piece] = {
    val all = new ByteArrayInputStream(bytes)
    val in = new DataInputStream(all)
    val pieces = Seq.newBuilder[Piece]
    while (all.available > 0) readFromClient(in)(pieces += _)
    pieces.result()
  }

  /** The bytes of pieces, each with its number in front; `first`: that of the first one. */
  private[run] def numbered(first: Long, pieces: Seq[Piece]): Array[Byte] = {
    val all = new ByteArrayOutputStream
    val out = new DataOutputStream(all)
    pieces.zipWithIndex.foreach { case (piece, i) =>
      out.writeLong(first + i)
      piece.write(out)
    }
    all.toByteArray
  }

  private def bytes(in: DataInputStream, length: Int): Array[Byte] = {
    val read = new Array[Byte](length)
    in.readFully(read)
    read
  }
}

/** The memory of a queue: whoever adds to it waits until less than `limit` bytes are taken. */
private[run] final class Space(limit: () => Long) {
  private var taken = 0L
  private var isClosed = false

  /** Returns whether it is still open: else nothing is taken. */
  def take(bytes: Long, waits: Boolean = true): Boolean = synchronized {
    while (!isClosed && waits && isFull) wait()
    if (!isClosed) taken += bytes
    !isClosed
  }

  def release(bytes: Long): Unit = synchronized {
    taken -= bytes
    notifyAll()
  }

  /** Nobody waits any more. */
  def close(): Unit = synchronized {
    isClosed = true
    notifyAll()
  }

  def used: Long = synchronized(taken)

  def isFull: Boolean = synchronized(taken >= limit())
}

/**
 * What waits for a run's client. The pieces are numbered from 1, and stay until the client names a
 * later one, so that it can ask again.
 */
private[run] final class ClientQueue(space: Space) {
  private val pieces = mutable.Queue.empty[Piece]
  private var dropped = 0L
  private var isClosed = false

  /** Waits for space. If the queue is closed, the piece is dropped. */
  def put(piece: Piece, waits: Boolean = true): Unit = if (space.take(piece.cost, waits))
    synchronized {
      pieces += piece
      notifyAll()
    }

  /**
   * Drops the pieces up to number `after`, and waits at most `millis` for later ones; then for more
   * until `from`, of System.nanoTime(), or there are enough. Returns the number of the first one, and
   * at most `ClientQueue.MostBytes` of them, but at least one if there is one.
   */
  def take(after: Long, millis: Long, from: Long): (Long, Seq[Piece]) = synchronized {
    // Another thread repeats a call that the client has made long ago.
    if (after < dropped) throw new ConfigException(s"after is $after, and $dropped was named")
    while (dropped < after && pieces.nonEmpty) {
      space.release(pieces.dequeue().cost)
      dropped += 1
    }
    waitUntil(System.nanoTime() + millis * 1000000)(pieces.nonEmpty)
    if (pieces.nonEmpty) waitUntil(from)(space.isFull || space.used >= ClientQueue.MostBytes)
    val sums = pieces.iterator.scanLeft(0L)(_ + _.cost).drop(1)
    val count = sums.takeWhile(_ <= ClientQueue.MostBytes).size
    (dropped + 1, pieces.take(math.max(1, count)).toIndexedSeq)
  }

  private def waitUntil(end: Long)(isEnough: => Boolean): Unit = {
    def left = (end - System.nanoTime()) / 1000000
    while (!isEnough && !isClosed && left > 0) wait(left)
  }

  def close(): Unit = {
    space.close()
    synchronized {
      isClosed = true
      notifyAll()
    }
  }
}

private[run] object ClientQueue {
  private final val MostBytes = 8L << 20
}
