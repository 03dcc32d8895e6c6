package supply.run

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.Executor

import scala.collection.concurrent.TrieMap
import scala.collection.mutable

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.SparkContext
import org.slf4j.LoggerFactory

import supply.core.ConfigException
import supply.net.Connection
import supply.task.TaskReport

/**
 * A run at the hub: its peers, and the client that they speak to. What one side does not take fills
 * at most `limit` bytes, about; then nothing more is read from the other side. `secondsOfPolls`: as
 * of Hub.Limits. `later`: does something when a peer has had time to take what was sent to it.
 *
 * Locks, in their order: `closing` or `sending`; the run's; a peer's or the queue's; that of its space.
 */
private[supply] final class HubRun(val name: String, val key: Array[Byte], secondsOfPolls: Double,
    limit: () => Long, threads: Executor, later: (() => Unit) => Unit) {
  /** Of the run's parts, for a client that gets no exceptions of the JVM. */
  val failures: TrieMap[String, Throwable] = TrieMap.empty

  /** Where ranks save their states, and from where they load them. */
  @volatile var checkpoints: CheckpointFolders = CheckpointFolders(None, None)

  /** The name and the key by which ranks elsewhere know it. */
  @volatile var public: Option[(String, Array[Byte])] = None

  /** Of writes whose ranks connect, by the names of their data. */
  val ranks: TrieMap[String, ServedRanks] = TrieMap.empty

  /** Whether a write has opened it, so that it has no client. */
  @volatile var isOfWrite = false
  private var writes = 0
  private var isLeft = false

  /** Of the ranks' call. The next call has another one. */
  @volatile var call: HubRun.Call = new HubRun.Call
  private val slots = new SlotKeeper
  private val files = mutable.Set.empty[Connection]
  private val spaceToClient = new Space(limit)
  private val spaceToPeers = new Space(limit)
  private val toClient = new ClientQueue(spaceToClient)
  private val peers = mutable.Map.empty[Int, Peer]
  private var lastPeer = 0
  private val sending, closing = new Object
  private var client = Option.empty[Connection]
  private var lastSend = 0L
  @volatile private var heardAt = System.nanoTime()
  private var answersFrom = Long.MinValue
  @volatile private var closed = false

  def isClosed: Boolean = closed

  /** For how long it has had no client, in seconds. */
  def secondsAlone: Double = synchronized {
    if (client.isDefined || isOfWrite && writes > 0) 0 else (System.nanoTime() - heardAt) / 1e9
  }

  /**
   * Spark gets executors for that many tasks at once, and keeps them until a job of the run takes the
   * slots. hosts: of the tasks; none: any.
   */
  def keepSlots(sc: SparkContext, tasks: Int, hosts: Seq[String]): Unit = {
    slots.keep(sc, tasks, hosts)
    // Its end has not seen them.
    if (isClosed) slots.close()
  }

  /** A job of the run takes the slots now. */
  def releaseSlots(): Unit = slots.close()

  /** Bytes that wait for the client, and for peers, about. */
  def waitingBytes: (Long, Long) = (spaceToClient.used, spaceToPeers.used)

  /** Passes on what a peer sends, until its connection ends. */
  def servePeer(connection: Connection): Unit =
    join(connection).foreach { peer =>
      toClient.put(Piece(peer.number, Piece.Come, Piece.Empty))
      // After the end of the run this reads on: else the peer would lose what was sent to it last.
      try while (true) Piece.read(connection.in, peer.number, Piece.More)(toClient.put(_))
      finally {
        synchronized(peers -= peer.number)
        toClient.put(Piece(peer.number, Piece.Gone, Piece.Empty))
      }
    }

  private def join(connection: Connection): Option[Peer] = synchronized {
    if (isClosed) None
    else {
      lastPeer += 1
      val peer = new Peer(lastPeer, connection)
      peers(lastPeer) = peer
      Some(peer)
    }
  }

  /** Serves a file of a checkpoint. */
  def serveFile(connection: Connection): Unit =
    serving(connection)(HubFiles.serve(connection, checkpoints))

  /** Tells ranks elsewhere their places. */
  def servePlace(connection: Connection): Unit =
    serving(connection)(HubPlaces.serve(connection, this))

  private def serving(connection: Connection)(body: => Unit): Unit =
    if (synchronized(!isClosed && files.add(connection)))
      try body
      finally synchronized(files -= connection)

  /** A write keeps it open. False: it is closed, or just about to be. */
  def beginWrite(): Boolean = synchronized {
    val isOpen = !isClosed && !isLeft
    if (isOpen) writes += 1
    isOpen
  }

  /** Whether it is a write's, and has had none for so long. Then it gets none, and must be closed. */
  def isLeftFor(seconds: Double): Boolean = synchronized {
    isLeft = isOfWrite && secondsAlone > seconds
    isLeft
  }

  def endWrite(): Unit = synchronized {
    writes -= 1
    heardAt = System.nanoTime()
  }

  /** Makes that connection the client's; false: the run has one, or has ended. */
  def enter(connection: Connection): Boolean = synchronized {
    val isFirst = client.isEmpty && !isClosed
    if (isFirst) client = Some(connection)
    isFirst
  }

  /** Passes on what the client sends, and what is for it, until its connection ends. */
  def serveClient(connection: Connection): Unit = {
    threads.execute { () =>
      try writeToClient(connection)
      finally connection.close()
    }
    while (true) Piece.readFromClient(connection.in)(send(_))
  }

  private def writeToClient(connection: Connection): Unit = {
    var after = 0L
    while (!isClosed) {
      val (first, pieces) = toClient.take(after, HubRun.WaitMillis, System.nanoTime())
      pieces.foreach(_.write(connection.out))
      connection.out.flush()
      after = first + pieces.size - 1
    }
  }

  /** Pieces for a client without a connection, with their numbers: see [[ClientQueue.take]]. */
  def poll(after: Long, millis: Long): Array[Byte] = heard {
    val (first, pieces) = toClient.take(after, math.min(millis, HubRun.WaitMillis), nextAnswer())
    Piece.numbered(first, pieces)
  }

  /** When, in System.nanoTime(): the first polls get their answers at once, as those of a short call do. */
  private def nextAnswer(): Long = synchronized {
    val between = (secondsOfPolls * 1e9).toLong
    answersFrom = math.max(answersFrom, System.nanoTime() - HubRun.AtOnce * between) + between
    answersFrom
  }

  /**
   * Sends pieces of a client without a connection, when there is space: all of them, or none.
   * `number`: 1, 2 and so on; one that was there before does nothing.
   */
  def send(number: Long, bytes: Array[Byte]): Unit = heard(sending.synchronized {
    if (number > lastSend + 1 || number < 1) throw new ConfigException(
      s"send number $number of the run $name comes after $lastSend")
    if (number > lastSend) {
      val pieces =
        try Piece.allFromClient(bytes)
        catch {
          case e: IOException => throw new ConfigException(s"bytes has no whole pieces: $e", e)
        }
      spaceToPeers.take(0)
      pieces.foreach(send(_, waits = false))
      lastSend = number
    }
  })

  private def heard[A](call: => A): A = {
    heardAt = System.nanoTime()
    try call
    finally heardAt = System.nanoTime()
  }

  /** Tells the client something itself. Never waits. */
  def tell(message: Array[Byte]): Unit =
    toClient.put(Piece(HubRun.Itself, Piece.Last, message), waits = false)

  private def send(piece: Piece, waits: Boolean = true): Unit =
    if (spaceToPeers.take(piece.cost, waits)) synchronized(peers.get(piece.peer)) match {
      case Some(peer) => peer.send(piece)
      case None => spaceToPeers.release(piece.cost)
    }

  /** If nothing more can be sent to peers: ends those that take nothing, and tells the client. */
  def closeStalled(seconds: Double): Unit = if (spaceToPeers.isFull)
    synchronized(peers.values.toSeq).filter(_.secondsStalled > seconds).foreach { peer =>
      tell(HubRun.failure(
          f"a process of this run has taken no message for $seconds%.0f s: a rank or the task of its node is " +
            "suspended, or the network is down"))
      peer.close()
    }

  /**
   * Ends all connections, those of the peers after what was sent to them. A second call returns when
   * the first has.
   */
  def close(): Unit = closing.synchronized {
    val (ended, open) = synchronized {
      val isFirst = !closed
      closed = true
      if (isFirst) (client ++ files, peers.values.toSeq) else (Nil, Nil)
    }
    slots.close()
    toClient.close()
    open.foreach(_.send(Piece(0, Piece.Gone, Piece.Empty)))
    spaceToPeers.close()
    ended.foreach(_.close())
  }

  private final class Peer(val number: Int, val connection: Connection) {
    private val unsent = mutable.Queue.empty[Piece]
    private var isWriting = false
    private var tookAt = 0L

    /** For how long it has not taken what there is for it, in seconds. */
    def secondsStalled: Double = synchronized {
      if (isWriting) (System.nanoTime() - tookAt) / 1e9 else 0
    }

    def close(): Unit = connection.close()

    /** Never waits: a thread writes what has come, and ends. If there is none, the peer's connection ends. */
    def send(piece: Piece): Unit = {
      synchronized {
        unsent += piece
        if (!isWriting) {
          isWriting = true
          tookAt = System.nanoTime()
          try threads.execute(() => while (writeNext()) ())
          catch {
            case e: Throwable =>
              HubRun.log.warn(s"$connection is closed: no thread can write to it", e)
              connection.close()
              unsent.foreach(dropped => spaceToPeers.release(dropped.cost))
              unsent.clear()
              isWriting = false
          }
        }
      }
      if (piece.flag == Piece.Gone) later(() => connection.close())
    }

    private def writeNext(): Boolean = next() match {
      case None => false
      case Some(piece) =>
        try {
          if (piece.flag != Piece.Gone) piece.writeToPeer(connection.out)
          if (synchronized(unsent.isEmpty) || piece.flag == Piece.Gone) connection.out.flush()
          if (piece.flag == Piece.Gone) connection.endOutput()
        } catch { case _: IOException => connection.close() }
        finally spaceToPeers.release(piece.cost)
        true
    }

    private def next(): Option[Piece] = synchronized {
      isWriting = unsent.nonEmpty
      tookAt = System.nanoTime()
      if (isWriting) Some(unsent.dequeue()) else None
    }
  }
}

private[supply] object HubRun {
  private val log = LoggerFactory.getLogger("supply.run.Hub")
  private final val WaitMillis = 60000L

  /** Polls that are answered at once. */
  private[supply] final val AtOnce = 30

  /** The hub's own number among the peers'. */
  private final val Itself = 0

  private def failure(text: String): Array[Byte] =
    new ObjectMapper().createObjectNode().put("failure", text).toString.getBytes(UTF_8)

  /** What the driver's JVM knows of a call of Supplier.run. */
  private[supply] final class Call {
    /** All ranks have returned, maybe before the end of their data: their tasks end without a failure. */
    @volatile var haveReturned = false

    /** What the tasks have reported, with the name of their data. */
    @volatile var times = Vector.empty[(String, TaskReport)]

    def add(data: String, reports: Seq[TaskReport]): Unit = synchronized {
      times ++= reports.map(data -> _)
    }
  }
}
