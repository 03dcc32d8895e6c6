package supply.driver

import java.util.UUID
import java.util.concurrent.{Executors, TimeUnit}
import java.util.concurrent.atomic.AtomicBoolean

import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.supply.SparkInternals
import org.slf4j.LoggerFactory

import supply.core.{ConfigException, SupplierEndedException, Deadline}
import supply.data.{NoElements, Source}
import supply.executor.{StreamPart, StreamSignal, TaskSettings}
import supply.pair.ConfigFiles
import supply.plan.Hostfile

/**
 * A stream without end, from its start to its end or failure: supplies batch after batch, a pinned
 * job each, and in between shows the ranks that it lives.
 *
 * @param checkpoint
 *   tells this stream from others, and stays the same where the driver is started again
 */
private[supply] final class SupplyStream(sc: SparkContext, settings: SupplySettings,
    hosts: Hostfile,
    checkpoint: UUID) {
  import SupplyStream._

  private val configFiles = ConfigFiles(settings.mappedFiles, settings.namedPipes)

  /** The same, too: ranks that a driver has left know the next one by it. */
  private val run = math.max(1,
    (checkpoint.getMostSignificantBits ^ checkpoint.getLeastSignificantBits) & Long.MaxValue)
  private val limit = new Deadline(settings.timeout)
  private val isOver = new AtomicBoolean
  @volatile private var attached = Set.empty[Int]
  @volatile private var job = Option.empty[PinnedJob]

  private val clock = Executors.newSingleThreadScheduledExecutor { (work: Runnable) =>
    val thread = new Thread(work, "supply-stream")
    thread.setDaemon(true)
    thread
  }
  clock.scheduleWithFixedDelay(() => signal(), 0,
    (settings.timeout * 1000 / SignalsInTimeLimit).toLong, TimeUnit.MILLISECONDS)

  private val shutdown = SparkInternals.atShutdown { () =>
    val cause = new SupplierEndedException(
      "Spark was asked to end while the streaming query ran: stop the query first (query.stop())")
    job.foreach(_.giveUp(cause))
    fail(cause)
  }

  /**
   * Returns when every rank has had all of the batch, and has asked for more. What a rank has had
   * of it before, from an earlier attempt or an earlier driver, it does not get again.
   *
   * @throws SupplyException
   *   with the first cause, if any rank has not
   */
  def batch(number: Long)(open: => Source): Unit = {
    if (number > LastBatch) {
      throw new ConfigException(
        s"batch $number of the stream is more than the ranks can count ($LastBatch): start the query with a new checkpoint")
    }
    ContainerMemory.require(sc, configFiles, hosts)
    pinned(open, StreamPart.Batch(number.toInt))
  }

  /** Ends the ranks well: they get END_OF_DATA. Returns when they have taken it. */
  def end(): Unit = over {
    try pinned(new NoElements(sc), StreamPart.End)
    catch {
      case NonFatal(e) => deliver(PinnedJob.causeOf(e), wait = 0)
    } // Whoever was to come has been awaited.
  }

  /** Tells the ranks why nothing more comes. */
  def fail(cause: Throwable): Unit = over {
    val known = PinnedJob.causeOf(cause)
    deliver(known,
      known match {
        case _: SupplierEndedException => SupplyJob.deliverySeconds
        case _ => math.max(SupplyJob.deliverySeconds, limit.remainingNanos / 1e9)
      })
  }

  private def pinned(source: Source, part: StreamPart): Unit = {
    TaskSlots.require(sc, hosts, settings.timeout)
    val partitions = source.rdd.partitions.length
    val started = new PinnedJob(
      sc,
      source,
      part.plan(partitions, settings.ranks),
      TaskSettings(
        configFiles,
        hosts,
        source.schema,
        source.mainColumn,
        settings.blockElements.getOrElse(Int.MaxValue),
        settings.timeout,
        run,
        StreamPart.fingerprint(checkpoint, settings.ranks, partitions),
        settings.waitForRank,
        stream = Some(part)
      )
    )
    job = Some(started)
    try started.run()
    finally {
      attached ++= started.attachedRanks
      job = None
    }
    ()
  }

  private def over(body: => Unit): Unit = if (isOver.compareAndSet(false, true)) {
    clock.shutdownNow()
    try if (!sc.isStopped) body
    catch {
      case NonFatal(e) => log.warn("the ranks could not be told that their stream is over", e)
    } finally shutdown.close()
  }

  private def deliver(cause: Throwable, wait: Double): Unit =
    FailureDelivery.deliver(sc, configFiles, hosts, run,
      if (settings.waitForRank) Set.empty else attached, SupplyJob.describe(cause), wait)

  private def signal(): Unit = {
    val toSend = new StreamSignal(configFiles, hosts, run)
    try {
      NodeJob.run(sc, hosts, "showing the ranks that their stream lives")(_ => toSend.send()); ()
    } catch {
      case NonFatal(e) => log.warn(s"the ranks could not be shown that their stream lives: $e")
    }
  }
}

private object SupplyStream {
  private val log = LoggerFactory.getLogger(classOf[SupplyStream])

  /** So that one that comes late does no harm. */
  private val SignalsInTimeLimit = 4

  /** The last one behind which a position can be. */
  private val LastBatch = Int.MaxValue - 2L
}
