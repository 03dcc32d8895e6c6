package supply.bench

import java.util.concurrent.{CyclicBarrier, TimeUnit}

import org.apache.spark.{SparkContext, TaskContext}

import supply.pair.Pair
import supply.plan.{Groups, Hostfile, Plan, Sharing}
import supply.source.Source
import supply.task.{PairSupply, PinnedRDD, PinnedTask, PlannedEpoch, SupplySettings, TaskCounters, TaskSettings}

/** Runs the product's own pinned RDD and supply; measures the baseline before each epoch. */
private[bench] final class CycleJob(sc: SparkContext, source: Source, command: Cycle) {
  def run(): Rounds = {
    val plan = Plan(source.rdd.partitions.length, command.pairs, command.epochs, seed = 0)
    val hosts = Hostfile.oneNode(command.pairs * command.share)
    val user = SupplySettings(hosts.places.size, command.mappedFiles, command.namedPipes,
      epochs = command.epochs, timeout = command.timeout, resident = command.resident,
      residentFolder = command.residentFolder, share = Sharing.Neighbours(command.share))
    val settings =
      TaskSettings(user, hosts, Groups(hosts, user.share), source.schema, source.mainColumn)
    StartLine.drawFor(command.pairs)
    val task = new CycleTask(settings, plan, source.rdd.id, command.baselines, command.rings,
      new TaskCounters(sc))
    val rounds = PinnedRDD.using(sc, source, plan, preferred = _ => Nil) {
      _.mapPartitionsWithIndex((rank, epochs) => epochs.map(task.run(rank, _))).collect()
    }
    Rounds(rounds.toSeq)
  }
}

private[bench] final class CycleTask(
    settings: TaskSettings,
    plan: Plan,
    rddId: Int,
    baselines: Seq[Seq[String]],
    rings: Seq[Seq[String]],
    counters: TaskCounters)
    extends Serializable {
  def run(rank: Int, epochs: Iterable[PlannedEpoch]): Seq[Round] = {
    val context = TaskContext.get()
    val place = settings.hosts.places(settings.groups.first(rank))
    val pair = PinnedTask.attach(
      PinnedTask.pairs(settings.user.configFiles, place, settings.groups.ranks(rank)), place,
      context.attemptNumber(), settings.user.timeout)
    context.addTaskCompletionListener[Unit](_ => pair.close())
    def baselineOf(words: Seq[String]): Baseline = {
      val made = Baseline.of(words, pair, CachedElements.of(rddId, plan.partitionsOf(rank)))
      context.addTaskCompletionListener[Unit](_ => made.close())
      made
    }
    val (baseline, ring) = (baselineOf(baselines(rank)), rings.lift(rank).map(baselineOf))
    val supply = new PairSupply(rank, pair, settings, counters)
    val rounds = epochs.map(epoch => round(pair, supply, baseline, ring, epoch)).toVector
    supply.endOfData()
    pair.markEndSeen()
    rounds
  }

  private def round(
      pair: Pair, supply: PairSupply, baseline: Baseline, ring: Option[Baseline],
      epoch: PlannedEpoch): Round = {
    val reference = together(baseline)
    val ringReference = ring.map(together)
    StartLine.await(settings.user.timeout)
    val (elementsBefore, bytesBefore, waitedBefore) =
      (pair.publishedElements, pair.publishedBytes, pair.waitedNanos)
    val meter = new Meter
    supply.epoch(epoch)
    pair.awaitAllReleased()
    Round(reference, ringReference,
      meter.measured(pair.publishedElements - elementsBefore, pair.publishedBytes - bytesBefore),
      meter.allocatedBytes, pair.waitedNanos - waitedBefore)
  }

  private def together(baseline: Baseline): Measured = {
    StartLine.await(settings.user.timeout)
    baseline.measure()
  }
}

/** Lets the tasks of a job, threads of one JVM, begin a measurement together. */
private object StartLine {
  @volatile private var barrier = new CyclicBarrier(1)

  def drawFor(tasks: Int): Unit = barrier = new CyclicBarrier(tasks)

  /** Waits for the others, at most `timeout` seconds. */
  def await(timeout: Double): Unit = {
    barrier.await((timeout * 1e3).toLong, TimeUnit.MILLISECONDS)
    ()
  }
}
