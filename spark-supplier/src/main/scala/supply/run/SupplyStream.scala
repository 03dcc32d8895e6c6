package supply.run

import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.supply.{SparkInternals, StreamingQueryEnd}
import org.slf4j.LoggerFactory

import supply.core.{ConfigException, Deadline, FailureText, PlacementException, SourceException, SupplierEndedException, Threads}
import supply.plan.{Groups, Hostfile}
import supply.source.{NoElements, Source}
import supply.task.{StreamPart, StreamSignal, SupplySettings, TaskSettings}

/**
 * A stream, from its start to its end or failure: supplies each batch with a pinned job, and
 * signals the ranks in between. The id of `query`, which its checkpoint has, identifies it, also if its driver is
 * started again.
 */
private[supply] final class SupplyStream(sc: SparkContext, settings: SupplySettings,
    hosts: Hostfile, query: StreamingQuery) {
  import SupplyStream._

  private val checkpoint = query.id

  /** Follows from the checkpoint: the ranks of a driver that died recognise the next one by it. */
  private val run = math.max(1,
    (checkpoint.getMostSignificantBits ^ checkpoint.getLeastSignificantBits) & Long.MaxValue)
  private val served = ServedWrite.begin(sc, settings, settings.timeout)
  private val groups = Groups(hosts, settings.sharing)
  private val tasks = groups.places(hosts)
  private val deadline = new Deadline(settings.timeout)
  private var isOver = false
  @volatile private var attached = Set.empty[Int]
  @volatile private var job = Option.empty[PinnedJob]

  private val signalSeconds = settings.timeout / SignalsInTimeout

  /** When all ranks had a signal or a batch. */
  @volatile private var reachedAt = Option.empty[Long]

  private val timer =
    Threads.repeat("supply-stream", CheckMillis) {
      end()
      // Ranks that connect ask the hub.
      if (served.isEmpty && reachedAt.forall(at => (System.nanoTime() - at) / 1e9 >= signalSeconds))
        signal()
    }

  private val shutdown = SparkInternals.atShutdown { () =>
    val cause = new SupplierEndedException(
      "Spark was asked to end while the streaming query ran: stop the query first (query.stop())")
    job.foreach(_.fail(cause))
    fail(cause)
  }

  /**
   * Returns when every rank has received all of the batch, and has asked for more; throws the first
   * cause otherwise. A rank does not get again what an earlier attempt or driver supplied.
   */
  def batch(number: Long)(open: => Source): Unit = {
    if (number > LastBatch)
      throw new ConfigException(
        s"batch $number of the stream is more than the ranks can count ($LastBatch): start the query with a new checkpoint")
    if (served.isEmpty) ContainerMemory.require(sc, settings.configFiles, hosts)
    pinned(open, StreamPart.Batch(number.toInt))
  }

  /** Ends the stream if its query has ended. Returns when its ranks have been told. */
  def end(): Unit = if (!query.isActive) query.exception match {
    case Some(failure) => fail(Option(failure.getCause).getOrElse(failure))
    case None => endOfData()
  }

  private def endOfData(): Unit = over {
    try pinned(new NoElements(sc), StreamPart.End)
    catch {
      // The job has already waited for the ranks.
      case NonFatal(e) => deliver(PlacedJob.causeOf(e), wait = 0)
    }
  }

  /** Notifies the ranks why nothing more comes. */
  private def fail(cause: Throwable): Unit = over {
    val known = PlacedJob.causeOf(cause)
    deliver(known,
      known match {
        case _: SupplierEndedException => WaitingRanks.deliverySeconds
        case _ => math.max(WaitingRanks.deliverySeconds, deadline.remainingNanos / 1e9)
      })
  }

  private def pinned(source: Source, part: StreamPart): Unit = {
    val known = TaskSlots.require(sc, tasks, settings.timeout)
    val partitions = source.rdd.partitions.length
    val started = new PinnedJob(
      sc,
      source,
      part.plan(partitions, groups.size),
      TaskSettings(
        user = settings,
        hosts = known,
        groups = groups,
        schema = source.schema,
        mainColumn = source.mainColumn,
        run = run,
        plan = StreamPart.fingerprint(checkpoint, groups.size, partitions),
        stream = Some(part),
        links = served.map(_.links)),
      served = served.map(_.ranks))
    job = Some(started)
    try {
      started.run()
      reachedAt = Some(System.nanoTime())
    } finally {
      attached ++= started.attachedRanks
      job = None
    }
  }

  /** A second thread waits for the first one: when it returns, the program may stop Spark. */
  private def over(body: => Unit): Unit = synchronized(if (!isOver) {
    isOver = true
    timer.close()
    try if (!sc.isStopped) body
    catch {
      case NonFatal(e) => log.warn("the ranks could not be notified that their stream is over", e)
    } finally {
      served.foreach(_.close())
      shutdown.close()
    }
  })

  private def deliver(cause: Throwable, wait: Double): Unit = {
    if (served.isDefined) served.foreach(_.fail(FailureText.of(cause)))
    else FailureBroadcast.send(sc, settings.configFiles, hosts, run,
      if (settings.waitForRank) Set.empty else attached, FailureText.of(cause), wait)
    ()
  }

  /** A node without a free core gets its next signal. The others must not wait for it. */
  private def signal(): Unit = {
    reachedAt = Some(System.nanoTime())
    val (files, number, all) = (settings.configFiles, run, groups)
    try {
      NodeJob.run(sc, tasks, "signalling the ranks that their stream lives", signalSeconds,
        seconds = signalSeconds)(node => new StreamSignal(files, node.hosts, all, number).send())
      ()
    } catch { case e: PlacementException => log.info(e.getMessage) }
  }
}

private object SupplyStream {
  private val log = LoggerFactory.getLogger(classOf[SupplyStream])

  /** More than one, so that a late signal does no harm. */
  private val SignalsInTimeout = 4

  /** Whether the query has ended. It is usually told at once. */
  private val CheckMillis = 500L

  /** A position can lie after this batch, but not after a later one. */
  private val LastBatch = Int.MaxValue - 2L
}

/** Starts and ends the [[SupplyStream]] of the streaming query of one sink. */
private[supply] final class QueryStream(context: SQLContext, settings: SupplySettings) {
  // If the files are wrong, the start of the query fails.
  private val hosts = settings.readHosts()
  private var stream = Option.empty[SupplyStream]
  @volatile private var lastBatch = -1L

  /** `query` has started. It signals the ranks from here on. */
  def start(query: StreamingQuery): Unit = {
    val started = new SupplyStream(context.sparkContext, settings, hosts, query)
    stream = Some(started)
    new StreamingQueryEnd(query, () => lastBatch)(started.end())
    ()
  }

  /** As [[SupplyStream.batch]]. */
  def batch(number: Long)(open: => Source): Unit = {
    val started = stream.getOrElse(throw new SourceException(
        "Spark has not said when this query starts and ends: see the driver's log"))
    started.batch(number)(open)
    lastBatch = number
  }
}
