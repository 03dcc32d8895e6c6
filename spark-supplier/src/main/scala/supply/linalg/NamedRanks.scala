package supply.linalg

import java.util.Arrays

import scala.collection.concurrent.TrieMap
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode

import supply.core.ConfigException

/** Ranks of a client of Python, and their matrices, by the names that the client gives. */
private[supply] final class NamedRanks(val key: Array[Byte], val ranks: Ranks,
    clientIsAlive: () => Boolean) {
  private val matrices = TrieMap.empty[String, Matrix]
  @volatile private var failed = Option.empty[Throwable]
  @volatile private var isRefused = false
  private var fetched = Option.empty[(Matrix, Array[Byte])]

  private def isOver: Boolean = isRefused || ranks.areGone || !clientIsAlive()

  /** If the ranks refuse it, the client makes others. */
  def attach(takeOver: Boolean): Unit =
    try ranks.attach(takeOver)
    catch {
      case NonFatal(e) =>
        isRefused = true
        throw e
    }

  /** Why the last call that failed has; None: none has, or another call began later. */
  def failure: Option[Throwable] = failed

  /** What a call returns. If it fails, [[failure]] has the reason. */
  def noting[A](call: => A): A = {
    failed = None
    try call
    catch {
      case NonFatal(e) =>
        failed = Some(e)
        throw e
    }
  }

  def matrix(name: String): Matrix =
    matrices.getOrElse(name, throw new ConfigException(s"the ranks have no matrix $name"))

  /** A result of the ranks, from now on. Returns what [[described]] says of it. */
  def hold(result: Matrix): ObjectNode = {
    val name = s"result-${result.handle}"
    matrices(name) = result
    described(name)
  }

  def described(name: String): ObjectNode = {
    val found = matrix(name)
    NamedRanks.json.createObjectNode().put("matrix", name).put("rows", found.rows)
      .put("columns", found.columns).put("array", found.isArray)
  }

  def forget(name: String): Unit = matrices.remove(name).foreach(_.forget())

  /** Spark Connect may repeat a write. */
  def send(name: String, make: Ranks => Matrix): Unit = synchronized {
    if (!matrices.contains(name)) matrices(name) = make(ranks)
  }

  /** A part of them, of at most that size. They are kept until the last one is fetched. */
  def bytes(name: String, begin: Int, most: Int): Array[Byte] = synchronized {
    val found = matrix(name)
    val all = fetched.filter(_._1 eq found).map(_._2).getOrElse(found.toBytes)
    val end = NamedRanks.end(begin, most, all.length)
    fetched = if (end < all.length) Some(found -> all) else None
    Arrays.copyOfRange(all, begin, end)
  }

  /** The client needs nothing of them any more, but may ask what became of them. */
  def leave(call: Ranks => Unit): Unit =
    try call(ranks)
    finally synchronized { fetched = None }
}

private[supply] object NamedRanks {
  private val json = new ObjectMapper
  private val all = TrieMap.empty[String, NamedRanks]

  /** Forgets those that are over: not earlier, because their client may ask why. */
  def add(id: String, key: Array[Byte], ranks: Ranks, clientIsAlive: () => Boolean): Unit = {
    all.filter(_._2.isOver).keys.foreach(all.remove(_))
    all(id) = new NamedRanks(key, ranks, clientIsAlive)
  }

  def find(id: String): Option[NamedRanks] = all.get(id)

  /** Of a piece, of at most that size. The sum of both could be more than an Int. */
  private[linalg] def end(begin: Int, most: Int, length: Int): Int =
    begin + math.min(most, length - begin)

  def apply(id: String): NamedRanks = all.getOrElse(id,
    throw new ConfigException(
      s"the server knows no ranks $id: the server was started again, or they were closed: make new Ranks"))
}
