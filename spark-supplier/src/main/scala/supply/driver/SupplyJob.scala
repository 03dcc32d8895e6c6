package supply.driver

import java.security.SecureRandom
import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.util.control.NonFatal

import org.apache.spark.SparkContext
import org.apache.spark.supply.SparkInternals

import supply.core.{ConfigException, SupplierEndedException, SupplyException, Deadline}
import supply.data.Source
import supply.executor.{TaskCounters, TaskReport, TaskSettings}
import supply.pair.ConfigFiles
import supply.plan.{Hostfile, Plan, Shuffle, Uneven}

/**
 * How to supply a source. SupplierOptions says what each means; `blockElements` None: blocks are
 * closed when they are full.
 */
final case class SupplySettings(
    ranks: Int,
    mappedFiles: String,
    namedPipes: String,
    epochs: Int = 1,
    seed: Long = 0,
    blockElements: Option[Int] = None,
    hosts: Option[String] = None,
    timeout: Double = 120,
    waitForRank: Boolean = false,
    resident: Boolean = false,
    shuffle: Shuffle = Shuffle.Partitions,
    uneven: Uneven = Uneven.Keep) {

  private[supply] def check(): Unit = {
    def atLeastOne(name: String, value: Int): Unit =
      if (value < 1) throw new ConfigException(s"--$name is $value: it must be at least 1")
    atLeastOne("ranks", ranks)
    atLeastOne("epochs", epochs)
    blockElements.foreach(atLeastOne("block-elements", _))
    if (resident && uneven != Uneven.Keep) {
      throw new ConfigException(
        "--resident repeats the blocks of the first epoch, and --uneven supplies other elements in each: one of the two")
    }
    shuffle match {
      case Shuffle.Elements(_) if resident =>
        throw new ConfigException(
          "--resident repeats the blocks of the first epoch as they are, so --shuffle can only be partitions or none")
      case _ =>
    }
    if (!(timeout > 0))
      throw new ConfigException(s"--timeout is $timeout: it must be above 0 seconds")
  }
}

/** One run: supplies a source to all its ranks, or tells every rank why not. */
object SupplyJob {

  /**
   * For ranks that are just coming, where the time limit has passed or nobody is to wait for it.
   */
  private[supply] val deliverySeconds = 2.0

  /** What a JVM that is asked to end waits for the ranks to be told. */
  private val endSeconds = 10L

  /**
   * @param open
   *   makes the source. Called here, so that the ranks, which are waiting by now, learn of a source
   *   that can not be opened
   * @return
   *   what each rank has received, by rank: all of it
   * @throws SupplyException
   *   with the first cause, if any rank has not received all its data
   */
  def run(sc: SparkContext, settings: SupplySettings)(open: => Source): IndexedSeq[TaskReport] = {
    val configFiles = ConfigFiles(settings.mappedFiles, settings.namedPipes)
    var hosts = Hostfile.oneNode(math.max(1, settings.ranks))
    val limit = new Deadline(settings.timeout)
    val random = new SecureRandom
    var run = 0L
    while (run == 0) run = random.nextLong()
    @volatile var job = Option.empty[PinnedJob]
    @volatile var endedBefore = Option.empty[SupplyException]
    val over = new CountDownLatch(1)
    val thread = Thread.currentThread()
    // Spark goes down only when the ranks know why. What comes before the job can be ended by interrupting it.
    def end(): Unit = {
      val cause = new SupplierEndedException(
        "the Supplier was asked to end (SIGTERM or Ctrl-C) before every rank had all its data")
      job match {
        case Some(begun) => begun.giveUp(cause)
        case None =>
          endedBefore = Some(cause)
          thread.interrupt()
      }
      over.await(endSeconds, TimeUnit.SECONDS)
      ()
    }
    try SparkInternals.beforeShutdown(() => end()) {
        settings.check()
        hosts = Hostfile(settings.hosts, settings.ranks)
        if (settings.hosts.isEmpty) configFiles.read(settings.ranks)
        ContainerMemory.require(sc, configFiles, hosts)
        TaskSlots.require(sc, hosts, settings.timeout)
        val source = open
        val plan = RunPlan(sc, source, settings, hosts)
        val pinned = new PinnedJob(
          sc,
          source,
          plan,
          TaskSettings(
            configFiles,
            hosts,
            source.schema,
            source.mainColumn,
            settings.blockElements.getOrElse(Int.MaxValue),
            settings.timeout,
            run,
            plan.fingerprint(source.partitionElements.map(_.sum)),
            settings.waitForRank,
            settings.resident,
            wholeBlocks = plan.equalSteps.isDefined && settings.blockElements.isDefined
          )
        )
        val progress = supplied(sc, pinned.counters, plan,
          plan.elements(source.partitionElements).map(_ * settings.epochs))
        job = Some(pinned)
        try pinned.run()
        finally progress.close()
      }
    catch {
      case e: Throwable =>
        // The interrupt has done its work, and telling the ranks waits, too.
        if (endedBefore.isDefined) Thread.interrupted()
        val cause = endedBefore.getOrElse(PinnedJob.causeOf(e))
        if (!sc.isStopped) {
          val wait = cause match {
            case _: SupplierEndedException => deliverySeconds
            case _ => math.max(deliverySeconds, limit.remainingNanos / 1e9)
          }
          // A rank that has gone may come back where it is awaited.
          val attached =
            if (settings.waitForRank) Set.empty[Int] else job.fold(Set.empty[Int])(_.attachedRanks)
          try FailureDelivery.deliver(sc, configFiles, hosts, run, attached, describe(cause), wait)
          catch { case NonFatal(second) => cause.addSuppressed(second) }
        }
        throw cause
    } finally over.countDown()
  }

  private def supplied(sc: SparkContext, counters: TaskCounters, plan: Plan,
      expected: Option[Long]) =
    new Progress(sc, Seq(counters.elements, counters.bytes, counters.partitions))({
      (totals, seconds) =>
        val (elements, bytes, partitions) = (totals(0), totals(1), totals(2))
        // A DataFrame does not know how many rows it has.
        val share = expected.map(elements.toDouble / _).getOrElse(
          partitions.toDouble / plan.partitions / plan.epochs)
        share -> (s"$elements${expected.fold("")(all => s" of $all")} elements, " +
          f"${bytes / 1e9}%.3f GB, ${bytes / 1e9 / seconds}%.3f GB/s, $seconds%.0f s")
    })

  /** One line: a failure of our own by its text, any other by its class, too. */
  private[supply] def describe(e: Throwable): String = e match {
    case known: SupplyException => known.getMessage
    case other => other.toString.linesIterator.take(1).mkString
  }
}
