package supply.run

import org.apache.spark.SparkContext
import org.slf4j.LoggerFactory

import supply.core.ConfigException
import supply.plan.{EqualSteps, GlobalOrder, Groups, Hostfile, Imbalance, Plan, Resume, Shuffle, Uneven}
import supply.protocol.SavedPosition
import supply.source.{PartitionSizes, Source}
import supply.task.{HeapErrors, PinnedRDD, PlannedPartition, SupplySettings}

/** Makes the plan of a run, whose ranks are groups of them. */
private[supply] object RunPlan {
  private val log = LoggerFactory.getLogger("supply.RunPlan")

  def apply(sc: SparkContext, source: Source, settings: SupplySettings, hosts: Hostfile,
      groups: Groups): Plan = {
    val stopped = ResumePositions.of(settings).map(Groups.positions(_, settings.share, groups))
    val partitions = source.rdd.partitions.length
    def keeping(ranks: Int) =
      Plan(partitions, ranks, settings.epochs, settings.seed, settings.shuffle,
        globalBatch = settings.globalBatch)
    val counted = settings.uneven match {
      case Uneven.Keep => source.partitionElements
      case Uneven.Drop | Uneven.Pad => Some(source.partitionElements.getOrElse(
            count(sc, source, keeping(groups.size), hosts, groups, settings.timeout)))
    }
    def whole(ranks: Int) = evened(keeping(ranks), counted, settings)
    val ranks = stopped.map(_.size) :+ groups.size
    val elements = source.partitionElements.map(_.sum)
    val plan = settings.globalBatch match {
      case Some(batch) =>
        // Each run began where the one before stopped.
        val (epoch, done) = stopped.foldLeft((0, 0L)) { (begun, saved) =>
          requireOf(whole(saved.size), saved, elements)
          GlobalOrder(batch, saved.size).reached(saved, begun, elements)
        }
        whole(groups.size).copy(firstEpoch = epoch,
          epochs = math.max(0, settings.epochs - epoch), doneElements = done)
      case None => stopped.zip(ranks.tail).foldLeft(whole(ranks.head)) {
          case (plan, (saved, next)) =>
            requireOf(plan, saved, elements)
            Resume(plan, saved.map(_.position), whole(next), counted)
        }
    }
    report(plan, counted)
    if (!settings.isQuiet) warn(source, settings, counted)
    plan
  }

  private def evened(
      plan: Plan, counted: Option[IndexedSeq[Long]], settings: SupplySettings): Plan =
    settings.uneven match {
      case Uneven.Keep => plan
      case Uneven.Drop | Uneven.Pad =>
        val steps = EqualSteps(counted.get, (0 until plan.ranks).map(plan.partitionsOf),
          settings.blockElements.getOrElse(1), isPadded = settings.uneven == Uneven.Pad)
        plan.copy(equalSteps = Some(steps))
    }

  /** A position means nothing in another plan. (A6) */
  private def requireOf(
      plan: Plan, saved: IndexedSeq[SavedPosition], elements: Option[Long]): Unit = {
    val fingerprint = plan.fingerprint(elements)
    val other = saved.indexWhere(position => position.plan != 0 && position.plan != fingerprint)
    if (other >= 0) throw new ConfigException(
      s"--resume-positions: rank $other of ${saved.size} saved its position in a run with another number of ranks than " +
        s"${saved.size}, other data or partitions than these ${plan.partitions}, or another --seed, --shuffle (with --exchange-fraction) or --uneven " +
        "(with --block-elements): give the positions of all its ranks, and everything else as in that run; if that run resumed, " +
        "its own --resume-positions and a slash come first")
  }

  /** A number with which ranks get similar shares. A run that resumes has that of its first one. */
  def partitionsFor(settings: SupplySettings): Int = 4 * ResumePositions.firstRanks(settings)

  private def warn(
      source: Source, settings: SupplySettings, counted: Option[IndexedSeq[Long]]): Unit =
    imbalance("the data", source, settings, counted).foreach(text =>
      log.warn(
        s"$text: use ${partitionsFor(settings)} partitions, which have about equal numbers of rows " +
          "(df.repartition(N); of an LMDB, --partitions or its reader's option partitions)"))

  /** What is wrong with the ranks' shares of the source, if anything is. They may exchange them. */
  def imbalance(data: String, source: Source, settings: SupplySettings,
      counted: Option[IndexedSeq[Long]] = None): Option[String] = settings.shuffle match {
    case Shuffle.All(_) => None
    case _ if settings.globalBatch.isDefined => None
    case _ =>
      val sizes = counted.map(PartitionSizes(_, PartitionSizes.Elements)).orElse(
        source.partitionSizes)
      Imbalance.of(data, source.rdd.partitions.length, ResumePositions.firstRanks(settings),
        sizes.map(known => known.sizes -> known.unit))
  }

  private def report(plan: Plan, counted: Option[IndexedSeq[Long]]): Unit = {
    plan.equalSteps.foreach(steps =>
      log.info(
        s"each rank makes ${steps.steps} steps of ${steps.stepElements} elements in an epoch: " +
          s"${steps.elementsOfAll(plan.ranks)} elements of ${steps.counted.sum} (--uneven)"))
    plan.rest.foreach(rest =>
      log.info(
        s"${plan.ranks} ranks resume in epoch ${rest.epoch}: ${rest.left.map(_.size).sum} of " +
          s"${plan.partitions} partitions are left, with ${rest.elements(counted).fold("")(n => s"$n ")}elements"))
  }

  /** Elements of each partition, counted where its rank is: what Spark persists is there. */
  private def count(sc: SparkContext, source: Source, plan: Plan, hosts: Hostfile,
      groups: Groups, timeout: Double): IndexedSeq[Long] = {
    val inOrder = plan.copy(epochs = 1, shuffle = Shuffle.Off)
    val places = Places.ranks(sc, hosts, groups.first)
    new PlacedJob(sc, places, timeout,
      "counting the elements of each partition (--uneven)", Some(source.rdd)).run { task =>
      PinnedRDD.using(sc, source, inOrder, places.preferred) {
        _.mapPartitions(epochs =>
          task(epochs.flatten.flatMap(_.partitions).map(partition =>
              partition.index -> count(partition)).toArray).iterator)
          .collect().sortBy(_._1).map(_._2).toIndexedSeq
      }
    }
  }

  private def count(partition: PlannedPartition): Long = HeapErrors.naming(partition.index) {
    partition.open { cursor =>
      var elements = 0L
      while (cursor.next()) elements += 1
      elements
    }
  }
}

/** The value of --resume-positions: what the ranks of earlier runs have saved. */
private[supply] object ResumePositions {
  /** For each earlier run, oldest first, the saved positions of its ranks, by rank. */
  def of(settings: SupplySettings): IndexedSeq[IndexedSeq[SavedPosition]] =
    settings.resumePositions.fold(IndexedSeq.empty[IndexedSeq[SavedPosition]])(runs)

  /** The rings of the first run, at least. */
  def firstRanks(settings: SupplySettings): Int =
    settings.share.rings(of(settings).headOption.fold(settings.ranks)(_.size))

  private def runs(text: String): IndexedSeq[IndexedSeq[SavedPosition]] =
    text.split("/", -1).map(ranks).toIndexedSeq

  private def ranks(text: String): IndexedSeq[SavedPosition] =
    text.split(",", -1).map(_.trim).zipWithIndex.map { case (saved, rank) =>
      val position = SavedPosition.read(saved).getOrElse(throw new ConfigException(
          s"--resume-positions: '$saved', of rank $rank, is no position: give the text that the rank has saved, or " +
            SavedPosition.NoPosition))
      if (position.isInExchange) throw new ConfigException(
        s"--resume-positions: rank $rank saved its position in the middle of an exchange, where the elements of one rank are " +
          "with others, too: save positions at the end of an epoch, or resume with the same number of ranks, each with its own " +
          "position and without --resume-positions")
      position
    }.toIndexedSeq
}
