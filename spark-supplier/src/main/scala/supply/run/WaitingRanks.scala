package supply.run

import java.security.SecureRandom
import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, TimeUnit}

import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.supply.SparkInternals
import org.slf4j.LoggerFactory

import supply.core.{Deadline, FailureText, SupplierEndedException}
import supply.pair.ConfigFiles
import supply.plan.Hostfile
import supply.task.{NodeFailureTask, SupplySettings}

/**
 * The ranks that wait for a run, as far as its options name them (None: they do not). They are
 * notified of whatever fails on the driver, also before there is a job.
 */
private[supply] final class WaitingRanks(sc: SparkContext, known: Option[SupplySettings]) {
  import WaitingRanks._

  /** A random number, not 0. */
  val run: Long = {
    val random = new SecureRandom
    Iterator.continually(random.nextLong()).find(_ != 0).get
  }

  /** Those that were there. */
  @volatile private var there = Set.empty[Int]

  private val deadline = new Deadline(
    known.map(_.timeout).filter(Deadline.isAllowed).getOrElse(deliverySeconds))

  /** Where they are. What is wrong with the host file, the run says. */
  var hosts: Hostfile = known.fold(Hostfile.oneNode(0))(placesOf)

  private var served = Option.empty[ServedWrite]

  /** Lets ranks connect, if these do, until [[ended]] or [[failed]]. */
  def serve(settings: SupplySettings, seconds: Double): Option[ServedWrite] = {
    served = ServedWrite.begin(sc, settings, seconds)
    served
  }

  def ended(): Unit = { served.foreach(_.close()); served = None }

  // Its ranks must not get the failure of an earlier run.
  known.foreach(settings => forget(settings.configFiles))

  /** Runs `body`. If it fails, notifies the ranks, and throws the first cause. */
  def notifiedOf[A](body: => A): A =
    try body
    catch { case e: Throwable => throw failed(PlacedJob.causeOf(e)) }

  /**
   * Notifies the ranks that are there, and returns `cause`. Others are awaited beside the caller,
   * until the timeout. `attached`: ranks that had a task of the run.
   */
  def failed(cause: Throwable, attached: => Set[Int] = Set.empty): Throwable = {
    for (settings <- known if !sc.isStopped && settings.serve.isDefined) ofThis(cause) {
      if (served.isEmpty) serve(settings, seconds = 0)
      served.foreach(_.fail(FailureText.of(cause)))
      ended()
      true
    }
    for (settings <- known if !sc.isStopped && settings.serve.isEmpty) {
      // A rank that is gone may come back if the run waits for it.
      if (!settings.waitForRank) there = attached
      def send(wait: Double): Boolean = {
        FailureBroadcast.send(sc, settings.configFiles, hosts, run, there, FailureText.of(cause),
          wait, settings.residentPlace, report = seen => there ++= seen)
        hosts.places.indices.forall(there)
      }
      cause match {
        case _: SupplierEndedException => ofThis(cause)(send(deliverySeconds))
        case _ => if (!ofThis(cause)(send(0))) awaitThem(settings, cause)(send(0))
      }
    }
    cause
  }

  /** False: some ranks may come, or may be reached, later. */
  private def ofThis(cause: Throwable)(send: => Boolean): Boolean =
    try send
    catch {
      case NonFatal(second) =>
        log.warn("not all ranks were notified of the failure: {}", FailureText.of(second))
        cause.addSuppressed(second)
        false
    }

  private def awaitThem(settings: SupplySettings, cause: Throwable)(send: => Boolean): Unit = {
    val seconds = math.max(deliverySeconds, deadline.remainingNanos / 1e9)
    log.warn("{}: waiting at most {} s for the ranks, to notify them", FailureText.of(cause),
      math.round(seconds))
    val notice = new Notice(sc, settings.configFiles, seconds, there.nonEmpty, send)
    notices.put(notice, notice)
    notice.start()
  }
}

private[supply] object WaitingRanks {
  private val log = LoggerFactory.getLogger("supply.run.WaitingRanks")

  /** How long to wait for ranks that are just coming, if nobody should wait any longer. */
  private[run] val deliverySeconds = 2.0

  /** Between two looks for ranks: no task waits for them, because it would hold a core. */
  private val pauses = Iterator.iterate(0.5)(_ * 2).takeWhile(_ < 5).toSeq

  private val pollMillis = 100L

  private val notices = new ConcurrentHashMap[Notice, Notice]

  /** Waits until all ranks are notified that earlier failures concern, or awaited for long enough. */
  def awaitNotices(): Unit = notices.keySet.asScala.foreach(_.await())

  private def forget(files: ConfigFiles): Unit =
    notices.keySet.asScala.filter(_.files == files).foreach(_.end())

  /** Those of the options. If their number is not known, all for whom there are files. */
  private def placesOf(settings: SupplySettings): Hostfile = {
    def lines = Try(settings.configFiles.read().size).getOrElse(1)
    def here(ranks: Int) = Hostfile.oneNode(math.max(1, ranks))
    if (settings.ranks > 0)
      Try(Hostfile(settings.hosts, settings.ranks, settings.texts)).getOrElse(here(settings.ranks))
    else settings.hosts.flatMap(file => Try(Hostfile.all(file, settings.texts)).toOption).getOrElse(
      here(lines))
  }

  /** Looks for the ranks of a failed run until `send` has reached them. */
  private final class Notice(sc: SparkContext, val files: ConfigFiles, seconds: Double,
      oneIsThere: => Boolean, send: => Boolean)
      extends Thread(s"supply-failure-notice ${files.mappedFiles}") {
    setDaemon(true)
    private val ended, unwanted = new CountDownLatch(1)

    /** A JVM that ends waits only for ranks that are just coming. */
    private def atExit(): Unit = {
      ended.await((deliverySeconds * 1000).toLong, TimeUnit.MILLISECONDS)
      ()
    }

    override def run(): Unit =
      try SparkInternals.beforeShutdown(() => atExit()) {
          val deadline = new Deadline(seconds)
          val waits = pauses.iterator ++ Iterator.continually(pauses.last)
          def isOver = deadline.passed || sc.isStopped ||
            unwanted.await((waits.next() * 1000).toLong, TimeUnit.MILLISECONDS)
          while (!reached && !isOver) {}
        }
      catch {
        case _: InterruptedException => ()
        case NonFatal(e) => log.info("the ranks were not notified: {}", FailureText.of(e))
      } finally {
        notices.remove(this)
        ended.countDown()
      }

    private def reached: Boolean =
      try send
      catch {
        case e: InterruptedException => throw e
        case NonFatal(e) =>
          log.info("not all ranks were notified: {}", FailureText.of(e))
          false
      }

    /** Once a rank is there, the others come within moments or not at all: mpirun starts them together. */
    def await(): Unit = {
      while (isAlive && !oneIsThere) join(pollMillis)
      join((NodeFailureTask.othersSeconds * 1000).toLong)
    }

    def end(): Unit = {
      unwanted.countDown()
      interrupt()
      join()
    }
  }
}
