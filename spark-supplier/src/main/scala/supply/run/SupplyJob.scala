package supply.run

import java.nio.ByteBuffer
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.concurrent.{CountDownLatch, TimeUnit}

import org.apache.spark.SparkContext
import org.apache.spark.supply.SparkInternals

import supply.core.{ConfigException, SupplierEndedException, SupplyException}
import supply.plan.{Groups, Hostfile, Plan}
import supply.source.Source
import supply.task.{SupplySettings, TaskCounters, TaskReport, TaskSettings}

/** One run: supplies a source to all its ranks, or notifies every rank why not. */
private[supply] object SupplyJob {
  /** How long a JVM that is asked to end waits until the ranks are notified. */
  private val endSeconds = 10L

  /**
   * Supplies a source to all its ranks. Returns what each has received; throws the first cause if
   * that is not all its data. `open` runs here, so that waiting ranks learn of a failure in it.
   */
  def run(sc: SparkContext, settings: SupplySettings)(open: => Source): IndexedSeq[TaskReport] =
    run(new WaitingRanks(sc, Some(settings)), sc, settings, () => true)(_ => open)

  /**
   * Runs with options. Their values are checked here, so that waiting ranks learn of a mistake.
   * `check` throws what else is wrong. `isWanted`: whether ranks may still need data.
   */
  def run(sc: SparkContext, options: RunOptions, check: () => Unit = () => (),
      isWanted: () => Boolean = () => true)(
      open: SupplySettings => Source): IndexedSeq[TaskReport] =
    run(new WaitingRanks(sc, options.ranksToNotify), sc, { check(); options.settings }, isWanted)(
      open)

  private def run(ranks: WaitingRanks, sc: SparkContext, checked: => SupplySettings,
      isWanted: () => Boolean)(
      open: SupplySettings => Source): IndexedSeq[TaskReport] = {
    @volatile var job = Option.empty[PinnedJob]
    @volatile var endedBefore = Option.empty[SupplyException]
    var isFailing = false
    val over = new CountDownLatch(1)
    val thread = Thread.currentThread()
    // Spark stops only when the ranks know why. If there is no job yet, an interrupt stops this thread.
    def end(): Unit = {
      val cause = new SupplierEndedException(
        "the Supplier was asked to end (SIGTERM or Ctrl-C) before every rank had all its data")
      job match {
        case Some(begun) => begun.fail(cause)
        case None =>
          over.synchronized {
            if (!isFailing) {
              endedBefore = Some(cause)
              thread.interrupt()
            }
          }
      }
      over.await(endSeconds, TimeUnit.SECONDS)
      ()
    }
    try SparkInternals.beforeShutdown(() => end()) {
        val settings = checked
        settings.check()
        val served = ranks.serve(settings, settings.timeout)
        ranks.hosts = settings.readHosts()
        if (served.isEmpty) ContainerMemory.require(sc, settings.configFiles, ranks.hosts)
        val groups = Groups(ranks.hosts, settings.sharing)
        val hosts = TaskSlots.require(sc, groups.places(ranks.hosts), settings.timeout)
        val source = open(settings)
        val plan = RunPlan(sc, source, settings, hosts, groups)
        val pinned =
          new PinnedJob(sc, source, plan,
            taskSettings(settings, hosts, groups, source, plan, ranks.run).copy(links =
              served.map(_.links)),
            isWanted, served.map(_.ranks))
        val progress = supplied(sc, settings, pinned.counters, plan,
          plan.elementsOfAllEpochs(source.partitionElements))
        job = Some(pinned)
        val reports = progress.during(pinned.run())
        ranks.ended()
        reports
      }
    catch {
      case e: Throwable =>
        // The interrupt would also end the wait for the ranks.
        over.synchronized {
          isFailing = true
          if (endedBefore.isDefined) Thread.interrupted()
        }
        throw ranks.failed(endedBefore.getOrElse(PlacedJob.causeOf(e)),
          job.fold(Set.empty[Int])(_.attachedRanks))
    } finally over.countDown()
  }

  private def taskSettings(settings: SupplySettings, hosts: Hostfile, groups: Groups,
      source: Source, plan: Plan, run: Long): TaskSettings = {
    if (settings.residentPlace.isDefined && source.schema.hasViews) throw new ConfigException(
      s"--in-place lets the ranks read the data where it lies, and ${settings.residentOption} copies it into a file: use one of the two")
    val tasks = TaskSettings(
      user = settings,
      hosts = hosts,
      groups = groups,
      schema = source.schema,
      mainColumn = source.mainColumn,
      run = run,
      plan = plan.fingerprint(source.partitionElements.map(_.sum)),
      steps = settings.blockElements.flatMap(_ => plan.equalSteps).map(_.steps),
      rankElements = plan.rankElements(source.partitionElements),
      sourceBytes = settings.residentPlace.flatMap(_ => source.bytes),
      beginsWithRest = plan.isRest(plan.firstEpoch),
      exchange = plan.exchange)
    tasks.copy(kept =
      settings.keep.map(KeptName(tasks.plan, source, tasks.blockElements, groups, _)))
  }

  private def supplied(sc: SparkContext, settings: SupplySettings, counters: TaskCounters,
      plan: Plan, expected: Option[Long]) =
    new Progress(sc, Seq(counters.elements, counters.bytes, counters.partitions),
      settings.isQuiet)({
      (totals, seconds) =>
        val (elements, bytes, partitions) = (totals(0), totals(1), totals(2))
        // The number of rows of a DataFrame is not known.
        val share = expected.map(elements.toDouble / _).getOrElse(
          partitions.toDouble / plan.partitionsOfAllEpochs)
        share -> (s"$elements${expected.fold("")(all => s" of $all")} elements, " +
          f"${bytes / 1e9}%.3f GB, ${bytes / 1e9 / seconds}%.3f GB/s, $seconds%.0f s")
    })
}

/** Names the resident files that outlive a run: PLAN-SOURCE of proto/PROTOCOL.md. */
private[supply] object KeptName {
  /**
   * `plan`: its fingerprint, which counts groups, where the files count ranks; `name`: what the
   * user calls the data, or empty. Throws a ConfigException if nothing identifies the data.
   */
  def apply(plan: Long, source: Source, blockElements: Int, groups: Groups,
      name: String): String = {
    if (Seq("true", "false").contains(name)) throw new ConfigException(
      s"keep=$name does not say which data it is: give it a name, as keep=digits-2026-11, or leave it out")
    if (name.isEmpty && source.identity.isEmpty) throw new ConfigException(
      "this data has no path by which a later run knows it again: name it, as keep=digits-2026-11")
    val parts = Seq(name, source.identity.getOrElse(""), source.schema.columns.mkString("\n"),
      blockElements.toString, groups.ranks.map(_.head).mkString(" "))
    f"$plan%016x-${hash(parts)}%016x"
  }

  /** The first 64 bits of SHA-256. */
  private def hash(parts: Seq[String]): Long = {
    val sha = MessageDigest.getInstance("SHA-256")
    parts.foreach { part =>
      val bytes = part.getBytes(UTF_8)
      sha.update(ByteBuffer.allocate(4).putInt(0, bytes.length))
      sha.update(bytes)
    }
    ByteBuffer.wrap(sha.digest()).getLong
  }
}
