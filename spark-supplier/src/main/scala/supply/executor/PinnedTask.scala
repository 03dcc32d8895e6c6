package supply.executor

import java.net.InetAddress

import org.apache.spark.{SparkEnv, TaskContext}
import org.slf4j.LoggerFactory

import supply.core.{MisplacedException, PairHeldException, PlacementException, RankEndedException, RankException, Deadline}
import supply.driver.RunRecord
import supply.pair.{ConfigFiles, Pair, PairPaths}
import supply.plan.Hostfile
import supply.protocol.Schema

/**
 * What all tasks of a run have in common.
 *
 * @param run
 *   number of this run: random, not 0
 * @param plan
 *   the plan's fingerprint
 * @param waitForRank
 *   a rank that ends early is awaited, and gets what follows the position that it brings
 * @param resident
 *   the blocks of the first epoch stay, and later epochs notify them again
 * @param wholeBlocks
 *   a block that is full before it has `blockElements` elements is an error
 * @param stream
 *   the part of a stream that is supplied; None: a run of its own, to its end
 */
final case class TaskSettings(
    configFiles: ConfigFiles,
    hosts: Hostfile,
    schema: Schema,
    mainColumn: Option[Int],
    blockElements: Int,
    timeout: Double,
    run: Long = 0,
    plan: Long = 0,
    waitForRank: Boolean = false,
    resident: Boolean = false,
    wholeBlocks: Boolean = false,
    stream: Option[StreamPart] = None) {

  /** Whether END_OF_DATA follows. */
  def isEnd: Boolean = stream.forall(_.isEnd)
}

/**
 * What one rank has been supplied with since it came: elements and bytes of blocks by all attempts
 * of its task, partitions and times (in nanoseconds) by the last one.
 */
final case class TaskReport(
    rank: Int,
    host: String,
    partitions: Int,
    elements: Long,
    bytes: Long,
    nanos: Long,
    waitedForRank: Long,
    waitedForSource: Long)

/**
 * Feeds one rank for the whole run, or for a batch of a stream.
 *
 * @param job
 *   name of the job, by which the driver knows it
 */
final class PinnedTask(
    settings: TaskSettings, counters: TaskCounters, job: String) extends Serializable {

  def run(rank: Int, epochs: Iterable[PlannedEpoch]): TaskReport = {
    var report = reported(rank)
    while (report.isEmpty) {
      try report = Some(supply(rank, epochs))
      catch {
        case e: RankEndedException if settings.waitForRank =>
          PinnedTask.log.warn(
            s"${e.getMessage} - waiting ${settings.timeout} s for it to come back")
        case e: MisplacedException => Misplaced.end(e.getMessage, settings.timeout)
        case e: PairHeldException => HeldPair.end(e.getMessage)
      }
    }
    report.get
  }

  private def supply(rank: Int, epochs: Iterable[PlannedEpoch]): TaskReport = {
    val attempt = TaskContext.get().attemptNumber()
    val pair =
      try attach(rank, attempt)
      catch {
        // Another attempt, which Spark took for dead, may have come to the end meanwhile.
        case e: RankException => return reported(rank).getOrElse(throw e)
      }
    try supply(rank, pair, epochs)
    finally pair.close()
  }

  private def attach(rank: Int, attempt: Int): Pair = {
    if (settings.stream.contains(StreamPart.End)) requireRank(rank)
    val limit = new Deadline(settings.timeout)
    def attached() = PinnedTask.attach(settings.configFiles, settings.hosts, rank, attempt,
      settings.timeout, settings.run)
    var pair = attached()
    // What a stopped query has supplied to its end: another rank is to come where it is started again.
    while (!settings.isEnd && pair.isAtEnd) {
      pair.close()
      if (limit.passed) throw new RankException(
        s"${pair.name}: its rank is at the end of the data, and does not close the pair (--timeout)")
      Thread.sleep(PinnedTask.pollMillis)
      pair = attached()
    }
    pair
  }

  /** Who ends a stream waits only for a rank that is just coming. */
  private def requireRank(rank: Int): Unit = {
    val limit = new Deadline(math.min(PinnedTask.comingSeconds, settings.timeout))
    val paths = PinnedTask.paths(settings.configFiles, settings.hosts, rank)
    while (!Pair.hasRank(paths)) {
      if (limit.passed) throw new RankException(
        s"rank $rank was not there when its stream ended (${paths.mappedFile})")
      Thread.sleep(PinnedTask.pollMillis)
    }
  }

  /**
   * What another attempt has reported whose rank has everything, and which may have died before it
   * let the rank go.
   */
  private def reported(rank: Int): Option[TaskReport] = {
    val report = RunRecord.reportOf(job, rank)
    if (report.isDefined && settings.isEnd && settings.hosts.places(rank).isOn(PinnedTask.host)) {
      Pair.markEndSeen(PinnedTask.paths(settings.configFiles, settings.hosts, rank), settings.run)
    }
    report
  }

  /** Supplies the rank that is there now, to the end, or to that of a stream's batch. */
  private def supply(rank: Int, pair: Pair, epochs: Iterable[PlannedEpoch]): TaskReport = {
    val start = System.nanoTime()
    RunRecord.attached(job, rank)
    val supply = new PairSupply(pair, settings, counters)
    epochs.foreach(supply.epoch)
    if (settings.isEnd) supply.endOfData() else pair.awaitAcknowledged()
    val report = TaskReport(rank, PinnedTask.host, supply.partitions, pair.publishedElements,
      pair.publishedBytes,
      System.nanoTime() - start, pair.waitedNanos, supply.waitedForSource)
    RunRecord.ended(job, report)
    if (settings.isEnd) pair.markEndSeen()
    report
  }
}

object PinnedTask {
  private val log = LoggerFactory.getLogger(classOf[PinnedTask])

  private val pollMillis = 20L

  /** For a rank that is just coming, where nobody is to wait for it. */
  private val comingSeconds = 2.0

  /** This executor's host, as Spark knows it. */
  def host: String = SparkEnv.get.blockManager.blockManagerId.host

  /** The files of the pair of a rank, on its own node. */
  def paths(configFiles: ConfigFiles, hosts: Hostfile, rank: Int): PairPaths = {
    val localRank = hosts.places(rank).localRank
    configFiles.read(localRank + 1)(localRank)
  }

  /**
   * Attaches to the pair of a rank, after making sure that this is the rank's node. timeout, run:
   * as for Pair.attach.
   */
  def attach(
      configFiles: ConfigFiles,
      hosts: Hostfile,
      rank: Int,
      attempt: Int,
      timeout: Double,
      run: Long = 0): Pair = {
    val place = hosts.places(rank)
    if (!place.isOn(host)) {
      throw new MisplacedException(
        s"the task of rank $rank landed on $host, but its rank is on ${place.host.mkString}")
    }
    val pair =
      Pair.attach(s"pair of rank $rank", paths(configFiles, hosts, rank), attempt, timeout, run)
    if (pair.rank >= 0 && pair.rank != rank) {
      try throw new PlacementException(
          s"${pair.name} belongs to MPI rank ${pair.rank}, not $rank: the Supplier's --hosts and " +
            s"mpirun's host file must name the same nodes in the same order (${InetAddress.getLocalHost.getHostName})")
      finally pair.close()
    }
    pair
  }
}
