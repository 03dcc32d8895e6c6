package supply.task

import java.util.concurrent.TimeUnit.NANOSECONDS

import org.apache.spark.util.LongAccumulator

import supply.block.{BlockWriter, ResidentFile}
import supply.core.{ConfigException, SourceException, Threads}
import supply.pair.Pair
import supply.plan.Share
import supply.protocol.{EpochCounts, Position}
import supply.source.ElementCursor

/**
 * Supplies a group of ranks over their ring, from the pair's position on. For one thread. `reportFirstEpoch`
 * gets whether the rank gets elements in its first epoch, and may refuse that before the rank knows.
 */
private[supply] final class PairSupply(group: Int, pair: Pair, settings: TaskSettings,
    counters: TaskCounters,
    reportFirstEpoch: Boolean => Unit = _ => ()) {
  settings.stream.fold(bindPlan())(_.follow(pair, settings.plan))
  private var counts = settings.counts(group)
  private var areCountsAnnounced = false
  pair.writeOrCheckExchange(settings.exchange)
  pair.forgetCounts()
  announceCounts()
  val writer = new BlockWriter(pair, settings.schema, settings.mainColumn, settings.blockElements,
    wholeBlocks = settings.steps.isDefined)
  private val start = pair.position
  private val residentFile = settings.residentFile(group, pair)
  private val clock = new SourceClock
  private val counted = Seq(
    // Earlier attempts have counted what they published.
    new Counted(counters.elements, () => pair.publishedElements, since = pair.publishedElements),
    new Counted(counters.bytes, () => pair.publishedBytes, since = pair.publishedBytes),
    new Counted(counters.partitions, () => partitions.toLong),
    new Counted(counters.millisWaitedForRank, () => NANOSECONDS.toMillis(pair.waitedNanos)),
    new Counted(counters.millisWaitedForSource, () => NANOSECONDS.toMillis(waitedForSource)))
  private var isReported = false
  var partitions = 0

  def waitedForSource: Long = clock.nanos

  private def bindPlan(): Unit = {
    if (settings.user.resumePositions.isDefined && pair.plan != settings.plan &&
      pair.start != Position.Start)
      throw new ConfigException(
        s"${pair.name}: the rank brings a position, and --resume-positions already says where all ranks resume: start the rank " +
          "without its position")
    pair.bindPlan(settings.plan)
  }

  def epoch(planned: PlannedEpoch): Unit = if (planned.epoch >= start.epoch) {
    val inside = start.inside.filter(_ => planned.epoch == start.epoch)
    fileFor(planned) match {
      case Some(file) => publish(planned, file, inside)
      case None =>
        keepForLater(planned, inside)
        planned.sequenceFrom.fold(write(planned, inside))(writeSequence(planned, _, inside))
    }
  }

  /** A rest may have partitions that other ranks get in whole epochs: the file has not got them. */
  private def fileFor(planned: PlannedEpoch): Option[ResidentFile] =
    if (planned.isRest) None else residentFile.flatMap(_.file)

  /** Keeps the blocks of the epoch in a file, if the user wants it. */
  private def keepForLater(planned: PlannedEpoch, inside: Option[(Int, Long)]): Unit =
    residentFile.foreach { file =>
      if (inside.isDefined) file.resume()
      else if (!isRestOfEpoch(planned) && settings.usesFileAfter(planned.epoch)) file.begin()
    }

  /** Whether an earlier run has supplied a part of that epoch, to this rank or to any. */
  private def isRestOfEpoch(planned: PlannedEpoch): Boolean =
    planned.isRest || pair.start.inside.isDefined && planned.epoch == pair.start.epoch

  /**
   * Publishes the blocks of the resident file, in the order of this epoch. If an earlier part ended
   * within a block, the rest of that partition comes from the source.
   */
  private def publish(
      planned: PlannedEpoch, file: ResidentFile, inside: Option[(Int, Long)]): Unit = {
    val elementsBefore = pair.publishedElements
    partitionsFrom(planned, inside).foreach { partition =>
      file.from(partition.index, partition.done) match {
        case None => supply(planned.epoch, partition)
        case Some(blocks) =>
          if (partition.done > 0 && !partition.isOrdered && blocks.nonEmpty && !pair.follows(
              file.foreign))
            throw unordered(partition, partition.done)
          blocks.foreach { block =>
            pair.publish(file.foreign, block, planned.epoch)
            count()
          }
          partitions += 1
          count()
      }
    }
    endEpoch(planned, inside, elementsBefore)
  }

  private def write(planned: PlannedEpoch, inside: Option[(Int, Long)]): Unit = {
    val elementsBefore = pair.publishedElements
    partitionsFrom(planned, inside).foreach(supply(planned.epoch, _))
    endEpoch(planned, inside, elementsBefore)
  }

  /** The elements of all partitions from that one on: they are numbered, and published, as those of one. */
  private def writeSequence(
      planned: PlannedEpoch, from: Long, inside: Option[(Int, Long)]): Unit = {
    val elementsBefore = pair.publishedElements
    val done = inside.fold(from)(_._2)
    writer.startAt(planned.epoch, 0, done)
    var index = 0L
    planned.partitions.foreach { partition =>
      open(partition) { cursor =>
        val timed = new TimedCursor(cursor, clock)
        while (timed.next())
          if (index < done) index += 1
          else {
            index += writer.append(cursor, Long.MaxValue)
            if (writer.isEmpty) count()
          }
      }
      partitions += 1
      count()
    }
    writer.flush()
    count()
    endEpoch(planned, inside, elementsBefore)
  }

  private def endEpoch(
      planned: PlannedEpoch, inside: Option[(Int, Long)], elementsBefore: Long): Unit = {
    val elements = pair.publishedElements - elementsBefore
    if (inside.isEmpty && !planned.isRest) learnCounts(elements)
    if (!isReported && planned.epoch == 0 && !planned.isRest && start == Position.Start)
      reportFirstEpoch(false)
    pair.publishEndOfEpoch(planned.epoch)
  }

  /** This attempt has supplied a whole epoch of `elements` elements. Later epochs have as many. */
  private def learnCounts(elements: Long): Unit =
    if (counts.isEmpty && settings.stream.isEmpty) {
      counts = Some(EpochCounts(elements))
      announceCounts()
    }

  /** If the plan begins with a rest, only after it: the rank would take it for a whole epoch. */
  private def announceCounts(): Unit =
    if (!areCountsAnnounced && (!settings.beginsWithRest || pair.hasPassedAnEpoch))
      counts.foreach { known =>
        pair.announceCounts(known)
        areCountsAnnounced = true
      }

  /** What is left of the epoch. */
  private def partitionsFrom(
      planned: PlannedEpoch, inside: Option[(Int, Long)]): Iterator[PlannedPartition] =
    inside.fold(planned.partitions) { case (partition, done) =>
      val rest = planned.partitions.dropWhile(_.index != partition)
      if (rest.isEmpty)
        throw new ConfigException(
          s"${pair.name}: the rank wants to resume in partition $partition, which is not its own: " +
            "was its position saved by another rank?")
      Iterator.single(rest.next().copy(done = done)) ++ rest
    }

  private def open[A](partition: PlannedPartition)(body: ElementCursor => A): A =
    HeapErrors.naming(partition.index, s"${pair.name}: ") {
      val start = System.nanoTime()
      partition.open { cursor =>
        clock.nanos += System.nanoTime() - start
        body(cursor)
      }
    }

  private def supply(epoch: Int, partition: PlannedPartition): Unit = {
    writer.startAt(epoch, partition.index, partition.done)
    partition.share match {
      case None => supplyOnce(partition, partition.done, Long.MaxValue)
      case Some(share) =>
        var begin = 0L
        while (begin < share.supplied) {
          val all = math.min(share.supplied - begin, share.counted)
          if (supplyOnce(partition, math.max(0, partition.done - begin), all) < all)
            throw changed(partition, share)
          begin += all
        }
    }
    writer.flush()
    partitions += 1
    count()
  }

  /** Supplies elements `done` to `limit`, or to the end. Returns where it stopped. */
  private def supplyOnce(partition: PlannedPartition, done: Long, limit: Long): Long =
    open(partition) { cursor =>
      val timed = new TimedCursor(cursor, clock)
      var at = 0L
      while (at < done && at < limit && timed.next()) at += 1
      if (at < math.min(done, limit)) throw shorter(partition, at)
      while (at < limit && timed.next()) {
        // After the last element nothing comes whose order matters.
        if (at == done && done > 0 && !partition.isOrdered) throw unordered(partition, done)
        at += writer.append(cursor, limit - at)
        if (writer.isEmpty) count()
      }
      at
    }

  private def unordered(partition: PlannedPartition, done: Long) =
    new SourceException(
      s"${pair.name}: cannot resume after element $done of partition ${partition.index}: Spark computes its rows in no " +
        "certain order (they come from a shuffle): start again, or write the data to files first, and supply these")

  private def shorter(partition: PlannedPartition, elements: Long) =
    new SourceException(
      s"${pair.name}: cannot resume after element ${partition.done} of partition ${partition.index}: the partition has " +
        s"$elements elements now. Resume with the data of the run that saved the position, or start without the position")

  private def changed(partition: PlannedPartition, share: Share) =
    new SourceException(s"${pair.name}: partition ${partition.index} had ${share.counted} elements when they were counted (--uneven), and has " +
      "fewer now: the source must not change during a run. Persist it, or write it to files first")

  /** Reports the progress of this task to the driver, and the counts to the rank, once a block. */
  private def count(): Unit = {
    counted.foreach(_.update())
    announceCounts()
    if (!isReported && pair.publishedElements > 0) {
      isReported = true
      reportFirstEpoch(true)
    }
  }

  /** Returns when the rank has released everything. */
  def endOfData(): Unit = {
    if (!pair.isAtEnd) pair.publishEndOfData()
    pair.awaitAllReleased()
    removeResidentFile()
    count()
  }

  /** Unless it outlives the run. */
  def removeResidentFile(): Unit =
    Threads.uninterrupted(residentFile.foreach(_.remove()))
}

/** Adds to an accumulator what a value has grown by since the last update. */
private final class Counted(accumulator: LongAccumulator, value: () => Long, since: Long = 0) {
  private var last = since

  def update(): Unit = {
    val now = value()
    accumulator.add(now - last)
    last = now
  }
}

/** Time that a task has waited for its source, in nanoseconds. */
private[supply] final class SourceClock {
  var nanos = 0L

  def time[A](weight: Long)(body: => A): A = {
    val start = System.nanoTime()
    try body
    finally nanos += (System.nanoTime() - start) * weight
  }
}

/**
 * Measures how long the source takes for the first element of a partition, and for every 17th of
 * the others, counted 17-fold: reading the clock takes as long as copying a small element. Sources
 * fetch every 2^n elements, so a period of 2^n would time all fetches, or none.
 */
private[supply] final class TimedCursor(cursor: ElementCursor, clock: SourceClock) {
  private var count = 0L

  def next(): Boolean = {
    val n = count
    count += 1
    if (n == 0) clock.time(1)(cursor.next())
    else if (n % TimedCursor.Stride == 0) clock.time(TimedCursor.Stride)(cursor.next())
    else cursor.next()
  }
}

private[supply] object TimedCursor {
  final val Stride = 17L
}

/**
 * Turns an OutOfMemoryError into an error that names the partition and what to change. Spark
 * itself would end the executor without a word about memory: docs/design/decisions.md.
 */
private[supply] object HeapErrors {
  private final val MiB = 1L << 20

  /** Without its cause: an executor that finds an OutOfMemoryError among the causes exits. `where`: before the text. */
  def naming[A](partition: Int, where: String = "")(body: => A): A =
    try body
    catch { case e: OutOfMemoryError => throw exception(partition, where, e) }

  private def exception(partition: Int, where: String, error: OutOfMemoryError) = {
    val said = String.valueOf(error.getMessage)
    new SourceException(s"${where}partition $partition" + (said match {
      case NoThread() =>
        s": the executor cannot start another thread ($said): let its user or its container have more " +
          "processes (ulimit -u, pids), or run fewer tasks at once"
      case Direct() =>
        s" does not fit into the executor's memory outside of the heap ($said): set -XX:MaxDirectMemorySize " +
          "in spark.executor.extraJavaOptions larger, and spark.executor.memoryOverhead with it"
      case Classes() =>
        s": the executor's JVM is out of memory ($said): see spark.executor.extraJavaOptions"
      case _ =>
        s" does not fit into the executor's heap of ${Runtime.getRuntime.maxMemory / MiB} MiB ($said): give the " +
          "executors more memory (spark.executor.memory), or the source more " +
          "and smaller partitions (--partitions) and elements"
    }))
  }

  private val NoThread = "(?s).*native thread.*".r
  private val Direct = "(?s).*[Dd]irect (?:buffer )?memory.*".r
  private val Classes = "Metaspace|Compressed class space".r
}
