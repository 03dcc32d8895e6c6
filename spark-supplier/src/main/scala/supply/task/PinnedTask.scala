package supply.task

import org.apache.spark.{SparkEnv, TaskContext}
import org.slf4j.LoggerFactory

import supply.core.{Deadline, DriverCalls, MisplacedException, PairException, PairHeldException, PlacementException, RankEndedException, RankException, SourceException}
import supply.pair.{ConfigFiles, Pair, PairPaths}
import supply.plan.{Hostfile, RankPlacement}

/** Feeds a group of ranks, of one ring, for a run, or for a batch of a stream. `driver` answers [[TaskMessage]]. */
private[supply] final class PinnedTask(settings: TaskSettings, counters: TaskCounters,
    driver: DriverCalls)
    extends Serializable {
  import settings.{hosts, user}

  def run(group: Int, epochs: Iterable[PlannedEpoch]): TaskReport = {
    var report = reported(group)
    if (report.isEmpty && !isWanted) report = Some(TaskReport.nothing(group, PinnedTask.host))
    while (report.isEmpty) {
      try report = Some(supply(group, epochs))
      catch {
        case e: RankEndedException if user.waitForRank =>
          PinnedTask.log.warn(
            f"${e.getMessage}%s - waiting ${user.secondsOfRank}%.0f s for it to come back")
      }
    }
    report.get
  }

  private def supply(group: Int, epochs: Iterable[PlannedEpoch]): TaskReport = {
    val attempt = TaskContext.get().attemptNumber()
    val pair =
      try attach(group, attempt)
      catch {
        // Another attempt, which Spark took for dead, may have reached the end meanwhile, or all
        // ranks have returned.
        case e @ (_: RankException | _: PairHeldException | _: PairException) =>
          return reported(group).getOrElse(
            if (isWanted) throw e else TaskReport.nothing(group, PinnedTask.host))
      }
    try pair.whileWhole(supply(group, pair, epochs))
    finally pair.close()
  }

  /** The ranks of a group of this node, and their files. */
  private def pairs(group: Int): Seq[(Int, PairPaths)] =
    PinnedTask.pairs(user.configFiles, hosts.places(group), settings.groups.ranks(group))

  private def attach(group: Int, attempt: Int): Pair = {
    if (settings.stream.contains(StreamPart.End) && settings.links.isEmpty) requireRank(group)
    // A stopped query has supplied this rank to its end: a new rank comes when the query restarts.
    var last: Pair = null
    new Deadline(user.secondsOfRank).find(PinnedTask.pollMillis) {
      val isExpected = nowAndThen(isWanted && !hasReport(group))
      last = settings.links.fold(
        PinnedTask.attach(pairs(group), hosts.places(group), attempt, user.secondsOfRank,
          settings.run, Some(user.timeout), isExpected)) { links =>
        val (rank, paths) = pairs(group).head
        links.attach(rank, paths, attempt, user, settings.run, driver, isExpected)
      }
      val isUsable = settings.isEnd || !last.isAtEnd
      if (!isUsable) last.close()
      if (isUsable) Some(last) else None
    }.getOrElse(throw new RankException(
        s"${last.name}: its rank is at the end of the data, and does not close the pair (--rank-timeout)",
        isTimeout = true))
  }

  /** All ranks may return before this task has met its own. It asks the driver seldom. */
  private def nowAndThen(question: => Boolean): () => Boolean = {
    val pause = new Deadline(PinnedTask.askSeconds)
    () =>
      if (!pause.passed) true
      else {
        pause.restart()
        question
      }
  }

  /** Another attempt may have ended this group since, and have let go some of its ranks. */
  private def hasReport(group: Int): Boolean =
    driver.ask[Option[TaskReport]](TaskMessage.ReportOf(group)).isDefined

  /** When a stream ends, a task waits only for a rank that is just coming. */
  private def requireRank(group: Int): Unit = {
    val deadline = new Deadline(math.min(PinnedTask.comingSeconds, user.timeout))
    pairs(group).foreach { case (rank, paths) =>
      if (!deadline.poll(PinnedTask.pollMillis)(Pair.hasRank(paths)))
        throw new RankException(
          s"rank $rank was not there when its stream ended (${paths.mappedFile})")
    }
  }

  /** The report of another attempt, which supplied all and may not have let the rank go. */
  private def reported(group: Int): Option[TaskReport] = {
    val report = driver.ask[Option[TaskReport]](TaskMessage.ReportOf(group))
    if (report.isDefined && settings.isEnd && settings.links.isEmpty && hosts.places(group).isOn(
        PinnedTask.host))
      pairs(group).foreach { case (_, paths) => Pair.markEndSeen(paths, settings.run) }
    report
  }

  /**
   * Fails if no rank gets an element in the first epoch. A rank without any waits a moment for the
   * others, because it may fail in its own way when it knows. Of a slow source the last one fails.
   */
  private def reportFirstEpoch(group: Int, hasElements: Boolean): Unit =
    user.emptyError.foreach { error =>
      def areAllEmpty = driver.ask[Option[Boolean]](TaskMessage.NoElements(group))
      if (hasElements) driver.ask[Unit](TaskMessage.Elements)
      else {
        val wait = new Deadline(math.min(PinnedTask.emptySeconds, user.timeout / 2))
        if (wait.find(PinnedTask.pollMillis)(areAllEmpty).contains(true))
          throw new SourceException(error)
      }
    }

  /** Supplies the rank that is there now, to the end of the run or of the batch. */
  private def supply(group: Int, pair: Pair, epochs: Iterable[PlannedEpoch]): TaskReport = {
    val start = System.nanoTime()
    driver.ask[Unit](TaskMessage.Attached(group))
    val supply = new PairSupply(group, pair, settings, counters, reportFirstEpoch(group, _))
    def report = TaskReport(
      rank = group,
      host = PinnedTask.host,
      partitions = supply.partitions,
      elements = pair.publishedElements,
      bytes = pair.publishedBytes,
      nanos = System.nanoTime() - start,
      waitedForRank = pair.waitedNanos,
      waitedForSource = supply.waitedForSource)
    try {
      epochs.foreach(supply.epoch)
      if (settings.isEnd) supply.endOfData() else pair.awaitAcknowledged()
      val all = report
      driver.ask[Unit](TaskMessage.Ended(all))
      if (settings.isEnd) pair.markEndSeen()
      all
    } catch { case _: RankEndedException if !isWanted => report }
    // The run has ended, and may have removed the file before this task made it.
    finally if (TaskContext.get().isInterrupted()) supply.removeResidentFile()
  }

  /** Whether a rank that has left is a failure. */
  private def isWanted: Boolean = driver.ask[Boolean](TaskMessage.IsWanted)
}

private[supply] object PinnedTask {
  private val log = LoggerFactory.getLogger(classOf[PinnedTask])

  private val pollMillis = 20L
  private val comingSeconds = 2.0
  private val askSeconds = 2.0
  private val emptySeconds = 10.0

  /** This executor's host, as Spark knows it. */
  def host: String = SparkEnv.get.blockManager.blockManagerId.host

  /** The ranks of this node with the files of their pairs. */
  def pairsHere(configFiles: ConfigFiles, hosts: Hostfile): Seq[(Int, PairPaths)] =
    ofLocalRanks(configFiles, hosts.ranksOn(host).map(rank => rank -> hosts.places(rank).localRank))

  /** The ranks of a group with the files of their pairs, on their own node. */
  def pairs(configFiles: ConfigFiles, place: RankPlacement,
      ranks: Range): Seq[(Int, PairPaths)] =
    ofLocalRanks(configFiles, ranks.map(rank => rank -> (place.localRank + rank - ranks.head)))

  private def ofLocalRanks(configFiles: ConfigFiles,
      localRanks: Seq[(Int, Int)]): Seq[(Int, PairPaths)] = {
    val all = configFiles.read(localRanks.map(_._2 + 1).max)
    localRanks.map { case (rank, localRank) => rank -> all(localRank) }
  }

  /** Attaches to the pairs of a group if this is its node; other parameters as for Pair.attach. */
  def attach(pairs: => Seq[(Int, PairPaths)], place: RankPlacement, attempt: Int,
      timeout: Double, run: Long = 0, attemptTimeout: Option[Double] = None,
      isExpected: () => Boolean = () => true): Pair = {
    if (!place.isOn(host))
      throw new MisplacedException(
        s"a task of ranks on ${place.host.mkString} landed on $host")
    val (ranks, paths) = pairs.toIndexedSeq.unzip
    val pair = Pair.attach(ranks.map(rank => s"pair of rank $rank").zip(paths), attempt, timeout,
      run, attemptTimeout, isExpected)
    pair.files.zip(ranks).find { case (file, rank) =>
      file.rank >= 0 && file.rank != rank
    }.foreach {
      case (file, rank) =>
        try throw new PlacementException(
            s"pair of rank $rank (${file.path}) belongs to MPI rank ${file.rank}, not $rank: Spark's executors and " +
              s"the ranks must be on the same nodes in the same order (this is $host)")
        finally pair.close()
    }
    pair
  }
}
