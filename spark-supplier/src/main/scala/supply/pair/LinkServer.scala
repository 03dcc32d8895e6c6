package supply.pair

import java.net.InetAddress
import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.concurrent.TrieMap

import supply.net.{Connection, Listener, Tls}
import supply.protocol.Layout.{BlockHeader, Constant, MappedFileHeader => At}

/** Where the ranks of this JVM's tasks connect, all at one port. */
private[supply] final class LinkServer private (bind: InetAddress, ports: Range, tls: Option[Tls]) {
  import LinkServer._

  private val links = TrieMap.empty[Link.Of, Link]
  private val listener = new Listener[String](bind, ports, "supply-link", tls, SecondsOfStrangers,
    (role, run) => if (role == Listener.Link) keyOf(run).map(run -> _) else None,
    (_, run, connection) => serve(run, new LinkConnection(connection)))

  def port: Int = listener.port

  private def keyOf(run: String): Option[Array[Byte]] =
    links.values.find(_.of.run == run).map(_.key)

  /**
   * A link that waits for that rank, which proves `key`; None: another task of this JVM has one. `paths`: of
   * its pair, if it had one here; `kept`: is told of each result that this node keeps.
   */
  def register(of: Link.Of, key: Array[Byte], paths: PairPaths, reconnectSeconds: Double)(
      kept: String => Unit): Option[Link] = {
    val link = new Link(of, key, paths, reconnectSeconds, kept, this)
    if (links.putIfAbsent(of, link).isEmpty) Some(link) else None
  }

  /** Whether it was there. */
  private[pair] def forget(link: Link): Boolean = links.remove(link.of, link)

  private[pair] def closeLater(connection: Connection): Unit = {
    listener.later(LingerSeconds)(connection.close())
    ()
  }

  private[pair] def execute(work: => Unit): Unit = listener.executor.execute(() => work)

  /** Answers that the rank does not get its task, and lets it read that. */
  private[pair] def refuse(rank: LinkConnection, kind: Int, text: String): Unit = {
    closeLater(rank.connection)
    rank.send(kind, text)
    rank.connection.endOutput()
    rank.connection.drain()
  }

  private def serve(run: String, rank: LinkConnection): Unit = {
    val late = listener.later(SecondsOfStrangers)(rank.connection.close())
    val opening =
      try open(rank)
      finally late.cancel(false)
    val of = Link.Of(run, opening.data, opening.rank)
    links.get(of) match {
      case Some(link) => link.serve(rank, opening)
      case None =>
        refuse(rank, Constant.LINK_BUSY, s"no task waits here for rank ${of.rank} of $run")
    }
  }

  private def open(rank: LinkConnection): LinkOpening = {
    val frame = rank.read()
    if (frame.kind != Constant.LINK_OPEN || frame.payload.length < LinkOpening.Least)
      throw new java.io.IOException("a rank must open its pair first")
    val (header, rest) = frame.payload.splitAt(At.SIZE)
    val (block, data) = rest.splitAt(BlockHeader.SIZE)
    LinkOpening(header, block, new String(data, UTF_8), frame.released, frame.acknowledged)
  }
}

private[supply] object LinkServer {
  private final val SecondsOfStrangers = 30.0
  private final val LingerSeconds = 5.0
  private val servers = TrieMap.empty[Boolean, LinkServer]

  /** That of this JVM, with TLS or without. It begins with the first task, and stays. */
  def apply(isTls: Boolean, bind: => InetAddress, ports: Range): LinkServer = synchronized {
    servers.getOrElseUpdate(isTls,
      new LinkServer(bind, ports, if (isTls) Some(Tls.selfSigned) else None))
  }
}
