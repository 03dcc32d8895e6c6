package supply.run

import java.util.UUID
import java.util.concurrent.atomic.AtomicBoolean

import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.sql.SQLContext
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.streaming.StreamingQuery
import org.apache.spark.supply.{SparkInternals, StreamingInternals, StreamingQueryEnd}
import org.slf4j.LoggerFactory

import supply.core.{ConfigException, Deadline, FailureText, PlacementException, SourceException, SupplierEndedException, Threads}
import supply.plan.Hostfile
import supply.source.{NoElements, Source}
import supply.task.{StreamPart, StreamSignal, SupplySettings, TaskSettings}

/**
 * A stream, from its start to its end or failure: supplies each batch with a pinned job, and
 * signals the ranks in between. `checkpoint` identifies it, also if its driver is started again.
 */
private[supply] final class SupplyStream(sc: SparkContext, settings: SupplySettings,
    hosts: Hostfile, checkpoint: UUID) {
  import SupplyStream._

  /** Follows from the checkpoint: the ranks of a driver that died recognise the next one by it. */
  private val run = math.max(1,
    (checkpoint.getMostSignificantBits ^ checkpoint.getLeastSignificantBits) & Long.MaxValue)
  private val deadline = new Deadline(settings.timeout)
  private val isOver = new AtomicBoolean
  @volatile private var attached = Set.empty[Int]
  @volatile private var job = Option.empty[PinnedJob]

  private val signalSeconds = settings.timeout / SignalsInTimeout
  private val timer =
    Threads.repeat("supply-stream", 0, (signalSeconds * 1000).toLong)(signal())

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
    ContainerMemory.require(sc, settings.configFiles, hosts)
    pinned(open, StreamPart.Batch(number.toInt))
  }

  /** Ends the stream: the ranks get END_OF_DATA. Returns when they have taken it. */
  def end(): Unit = over {
    try pinned(new NoElements(sc), StreamPart.End)
    catch {
      // The job has already waited for the ranks.
      case NonFatal(e) => deliver(PlacedJob.causeOf(e), wait = 0)
    }
  }

  /** Notifies the ranks why nothing more comes. */
  def fail(cause: Throwable): Unit = over {
    val known = PlacedJob.causeOf(cause)
    deliver(known,
      known match {
        case _: SupplierEndedException => WaitingRanks.deliverySeconds
        case _ => math.max(WaitingRanks.deliverySeconds, deadline.remainingNanos / 1e9)
      })
  }

  private def pinned(source: Source, part: StreamPart): Unit = {
    val known = TaskSlots.require(sc, hosts, settings.timeout)
    val partitions = source.rdd.partitions.length
    val started = new PinnedJob(
      sc,
      source,
      part.plan(partitions, settings.ranks),
      TaskSettings(
        user = settings,
        hosts = known,
        schema = source.schema,
        mainColumn = source.mainColumn,
        run = run,
        plan = StreamPart.fingerprint(checkpoint, settings.ranks, partitions),
        stream = Some(part)))
    job = Some(started)
    try started.run()
    finally {
      attached ++= started.attachedRanks
      job = None
    }
    ()
  }

  private def over(body: => Unit): Unit = if (isOver.compareAndSet(false, true)) {
    timer.close()
    try if (!sc.isStopped) body
    catch {
      case NonFatal(e) => log.warn("the ranks could not be notified that their stream is over", e)
    } finally shutdown.close()
  }

  private def deliver(cause: Throwable, wait: Double): Unit = {
    FailureBroadcast.send(sc, settings.configFiles, hosts, run,
      if (settings.waitForRank) Set.empty else attached, FailureText.of(cause), wait)
    ()
  }

  /** A node without a free core gets its next signal. The others must not wait for it. */
  private def signal(): Unit = {
    val (files, number) = (settings.configFiles, run)
    try {
      NodeJob.run(sc, hosts, "signalling the ranks that their stream lives", signalSeconds,
        seconds = signalSeconds)(node => new StreamSignal(files, node.hosts, number).send())
      ()
    } catch { case e: PlacementException => log.info(e.getMessage) }
  }
}

private object SupplyStream {
  private val log = LoggerFactory.getLogger(classOf[SupplyStream])

  /** More than one, so that a late signal does no harm. */
  private val SignalsInTimeout = 4

  /** A position can lie after this batch, but not after a later one. */
  private val LastBatch = Int.MaxValue - 2L
}

/** Starts and ends the [[SupplyStream]] of the streaming query that writes to `sink`. */
private[supply] final class QueryStream(context: SQLContext, settings: SupplySettings, sink: Sink) {
  // If the files are wrong, the start of the query fails.
  private val hosts = settings.readHosts()
  private var stream = Option.empty[(SupplyStream, StreamingQueryEnd)]
  @volatile private var lastBatch = -1L

  StreamingInternals.whenStarted(context.streams, sink)(start)

  private def start(query: StreamingQuery): Unit = {
    // It signals the ranks from here on, so the end must be observed first.
    lazy val started = new SupplyStream(context.sparkContext, settings, hosts, query.id)
    val end = new StreamingQueryEnd(query, () => lastBatch)(query.exception match {
      case Some(failure) => started.fail(Option(failure.getCause).getOrElse(failure))
      case None => started.end()
    })
    stream = Some(started -> end)
  }

  /** As [[SupplyStream.batch]]. */
  def batch(number: Long)(open: => Source): Unit = {
    val (started, end) = stream.getOrElse(throw new SourceException(
        "Spark has not said when this query starts and ends: see the driver's log"))
    end.renew()
    started.batch(number)(open)
    lastBatch = number
  }
}
