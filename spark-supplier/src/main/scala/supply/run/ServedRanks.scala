package supply.run

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.supply.OfApplication

import supply.core.{ConfigException, Deadline, PairException, RankException}
import supply.net.Connection
import supply.task.{Served, SessionEnd}

/**
 * What the driver knows of the ranks of one write, which connect from anywhere: at which executor each
 * has its task, who keeps their results, and why they get nothing more. `ranks`: 0: not known.
 */
private[supply] final class ServedRanks(served: Served, val ranks: Int) {
  import ServedRanks._

  /** By rank: the task that waits for it, with Spark's number, and where. */
  private var places = Map.empty[Int, (Long, String)]
  private var hosts = Map.empty[(String, Int), String]
  private var over = Option.empty[(Int, String)]

  /** Ranks that have asked, and do not know yet why they get nothing more. */
  private var asking = Set.empty[Int]

  def waits(rank: Int, task: Long, address: String): Unit = change {
    places += rank -> (task -> address)
  }

  /** The task has ended, with its executor or without. */
  def left(task: Long): Unit = change { places = places.filter(_._2._1 != task) }

  def keeps(rank: Int, host: String, name: String): Unit = change {
    hosts += (name, rank) -> host
  }

  /** The ranks get nothing more, for that reason unless there is one. */
  def fail(reason: String): Unit = change { over = over.orElse(Some(Failed -> reason)) }

  /** Each rank has had all of its data, unless the write has failed. */
  def end(): Unit = change {
    over = over.orElse(Some(Ended -> s"the run $served has ended"))
  }

  private def isOver: Boolean = synchronized(over.isDefined)

  private def change(body: => Unit): Unit = synchronized { body; notifyAll() }

  /** To a rank that asks for its place, after at most `seconds`. `of`: how many ranks it counts; 0: it does not. */
  def answer(rank: Int, of: Int, seconds: Double): (Int, String) = synchronized {
    val deadline = new Deadline(seconds)
    asking += rank
    while (now(rank, of).isEmpty && !deadline.passed)
      wait(math.max(1, deadline.remainingNanos / 1000000))
    now(rank, of).getOrElse(Waits -> "")
  }

  private def now(rank: Int, of: Int): Option[(Int, String)] =
    over.orElse(
      if (ranks > 0 && of > 0 && of != ranks) Some(Failed ->
        s"there are $of ranks, and Spark supplies $ranks (--ranks) as $served: give both the same number")
      else if (ranks > 0 && (rank < 0 || rank >= ranks)) Some(Failed ->
        s"it is rank $rank, and Spark supplies ranks 0 to ${ranks - 1} (--ranks) as $served")
      else places.get(rank).map(Is -> _._2))

  /** The rank has a final answer. */
  def told(rank: Int): Unit = change { asking -= rank }

  /** Waits at most that long until the ranks know why they get nothing more. */
  def awaitTold(seconds: Double): Unit = {
    new Deadline(seconds).poll(PollMillis)(synchronized(asking.isEmpty))
    ()
  }

  /** The hosts that keep a result of all ranks, by rank. Waits for it at most `seconds`. */
  def hostsOf(name: String, seconds: Double): IndexedSeq[String] = {
    val found = new Deadline(seconds).find(PollMillis)(synchronized {
      val there = (0 until ranks).flatMap(rank => hosts.get(name -> rank))
      if (there.size == ranks || over.isDefined) Some(there) else None
    })
    def missing = (0 until ranks).find(rank => synchronized(!hosts.contains(name -> rank)))
    found match {
      case Some(all) if all.size == ranks => all
      case Some(_) => throw new PairException(
          s"rank ${missing.mkString} has sent no result '$name', and $served is over: ${over.map(_._2).mkString}")
      case None => throw new RankException(
          f"rank ${missing.mkString}%s has not sealed its result '$name%s' within $seconds%.0f s (timeout)",
          isTimeout = true)
    }
  }
}

private[supply] object ServedRanks {
  // The hub's answers.
  private final val Is = 0
  private[run] final val Failed = 1
  private[run] final val Waits = 2
  private final val Ended = 3
  private val PollMillis = 20L

  /** The last ones of each name, also when they have ended: their results may be read. */
  private val known = new OfApplication(_ => mutable.Map.empty[Served, ServedRanks])

  /** Waits at most `seconds` for the end of another write of that name. */
  private[run] def begin(sc: SparkContext, served: Served, ranks: Int,
      seconds: Double): ServedRanks = {
    SessionEnd.watch(sc)
    new Deadline(seconds).find(PollMillis)(known.synchronized {
      if (known(sc).get(served).exists(!_.isOver)) None
      else {
        val begun = new ServedRanks(served, ranks)
        known(sc)(served) = begun
        Some(begun)
      }
    }).getOrElse(throw new ConfigException(
        f"ranks are supplied as $served%s by another write, which has not ended within $seconds%.0f s (--timeout): give this one another name (--serve RUN/DATA)"))
  }

  def of(sc: SparkContext, served: Served): ServedRanks =
    known.synchronized(known(sc).get(served)).getOrElse(
      throw new ConfigException(
        s"serve is '$served', and this session has supplied no ranks by that name"))
}

/** A connection of a rank elsewhere that asks where its task waits: docs/design/hub.md has its bytes. */
private[run] object HubPlaces {
  private final val SignSeconds = 10.0
  private final val PauseMillis = 50L
  private final val MostText = 2000

  def serve(connection: Connection, run: HubRun): Unit = {
    import connection.{in, out, readBytes}
    def text() = new String(readBytes(in.readUnsignedShort()), UTF_8)
    val (rank, ranks) = (in.readInt(), in.readInt())
    val (data, _) = (text(), text())
    var status = ServedRanks.Waits
    while (status == ServedRanks.Waits && !run.isClosed) {
      val asked = new Deadline(SignSeconds).find(PauseMillis)(run.ranks.get(data))
      val (found, answer) = asked.fold(ServedRanks.Waits -> "")(_.answer(rank, ranks, SignSeconds))
      val bytes = answer.take(MostText).getBytes(UTF_8)
      out.writeByte(found)
      out.writeShort(bytes.length)
      out.write(bytes)
      out.flush()
      if (found == ServedRanks.Failed) asked.foreach(_.told(rank))
      status = found
    }
  }
}
