package supply.bench

import com.fasterxml.jackson.annotation.{JsonSubTypes, JsonTypeInfo}
import com.fasterxml.jackson.annotation.JsonSubTypes.Type

/** A command of bench/engine: one JSON object per line. `do` names the command. */
@JsonTypeInfo(use = JsonTypeInfo.Id.NAME, property = "do")
@JsonSubTypes(Array(
    new Type(value = classOf[Generate], name = "generate"),
    new Type(value = classOf[OpenLmdb], name = "open_lmdb"),
    new Type(value = classOf[Cycle], name = "cycle"),
    new Type(value = classOf[Supply], name = "supply"),
    new Type(value = classOf[Latency], name = "latency")))
sealed trait Command

/**
 * Makes elements of one shape, persists them and opens them as the source; answers [[Tally]].
 *
 * @param batches true: as batches, as the Supplier persists an LMDB; false: as a user's tuples
 */
final case class Generate(
    channels: Int,
    height: Int,
    width: Int,
    totalBytes: Long,
    partitions: Int,
    batches: Boolean,
    storageLevel: String) extends Command

/**
 * Opens an LMDB as the source. With `storageLevel` NONE its own pages are read and the answer is
 * [[Done]]; otherwise Spark persists it and the answer is a [[Tally]].
 */
final case class OpenLmdb(path: String, partitions: Int, storageLevel: String) extends Command

/**
 * Supplies the source to `pairs` ranks, measures the baseline before each epoch; answers
 * [[Rounds]].
 *
 * @param baselines the baseline of each pair, see [[Baseline.of]]
 * @param resident the Supplier's --resident
 * @param shuffleBuffer the Supplier's --shuffle-buffer, with --shuffle elements
 */
final case class Cycle(
    pairs: Int,
    mappedFiles: String,
    namedPipes: String,
    epochs: Int,
    baselines: Seq[Seq[String]],
    timeout: Double,
    resident: Boolean = false,
    shuffleBuffer: Option[Int] = None) extends Command

/** Supplies the source to the ranks of a host file, as the Supplier does; answers [[Done]]. */
final case class Supply(ranks: Int, hosts: String, mappedFiles: String, namedPipes: String,
    epochs: Int, timeout: Double) extends Command

/** Publishes `samples` blocks of one element, one at a time; answers [[RoundTrips]]. */
final case class Latency(mappedFiles: String, namedPipes: String, samples: Int, elementBytes: Int,
    timeout: Double)
    extends Command

final case class Ready(pid: Long, spark: String, java: String, heapBytes: Long)
final case class Done(done: Boolean = true)
final case class Failed(error: String)

/** The content of the source, counted as the ranks count it (bench/c/tally.h). */
final case class Tally(elements: Long, bytes: Long, crcSum: BigInt)

/**
 * One measurement; `start` is a time of System.nanoTime, `cpuNanos` CPU time of the one busy
 * thread.
 *
 * @param firstNanos time until the first element arrived; 0 if it was not recorded
 * @param sum checksum of the data that a program read; 0 if Spark's task measured
 * @param peakBytes peak memory of the measuring program; 0 if Spark's task measured
 */
final case class Measured(
    start: Long,
    nanos: Long,
    cpuNanos: Long,
    elements: Long,
    bytes: Long,
    firstNanos: Long = 0,
    sum: BigInt = 0,
    peakBytes: Long = 0)

/**
 * One epoch of one pair: the baseline, then the cycle until the rank has read all blocks.
 *
 * @param allocatedBytes bytes that the task's thread allocated during the cycle
 * @param waitedForRank nanoseconds without a free slot
 */
final case class Round(baseline: Measured, cycle: Measured, allocatedBytes: Long,
    waitedForRank: Long)

final case class Rounds(pairs: Seq[Seq[Round]])

/** For each block: nanoseconds from the start of its writing to its release. */
final case class RoundTrips(nanos: Seq[Long])
