package supply.bench

import com.fasterxml.jackson.annotation.{JsonSubTypes, JsonTypeInfo}
import com.fasterxml.jackson.annotation.JsonSubTypes.Type

/** What bench/engine asks for, one JSON object a line; `do` says which. */
@JsonTypeInfo(use = JsonTypeInfo.Id.NAME, property = "do")
@JsonSubTypes(Array(
    new Type(value = classOf[Generate], name = "generate"),
    new Type(value = classOf[OpenLmdb], name = "open_lmdb"),
    new Type(value = classOf[Cycle], name = "cycle"),
    new Type(value = classOf[Supply], name = "supply"),
    new Type(value = classOf[Latency], name = "latency")
  ))
sealed trait Command

/**
 * Makes elements of one shape and persists them: the source from now on. Answered by a [[Tally]].
 *
 * @param batches
 *   whether as the Supplier persists an LMDB, or as tuples, as an RDD of somebody's own
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
 * An LMDB: the source from now on; `storageLevel` NONE for its own pages. Answered by a [[Tally]],
 * or [[Done]] for NONE.
 */
final case class OpenLmdb(path: String, partitions: Int, storageLevel: String) extends Command

/**
 * Supplies the source to `pairs` ranks, with a measurement of the limit before each epoch. Answered
 * by [[Rounds]].
 *
 * @param limits
 *   what to measure withMappedFile each pair, see [[Limit.of]]
 * @param resident
 *   as the Supplier's --resident
 * @param shuffleBuffer
 *   as the Supplier's, with --shuffle elements
 */
final case class Cycle(
    pairs: Int,
    mappedFiles: String,
    namedPipes: String,
    epochs: Int,
    limits: Seq[Seq[String]],
    timeout: Double,
    resident: Boolean = false,
    shuffleBuffer: Option[Int] = None) extends Command

/**
 * Supplies the source to ranks on the nodes of a host file, as the Supplier does. Answered by
 * [[Done]].
 */
final case class Supply(ranks: Int, hosts: String, mappedFiles: String, namedPipes: String,
    epochs: Int, timeout: Double) extends Command

/** Publishes `samples` blocks of one element to one rank, each when the one before is released. */
final case class Latency(mappedFiles: String, namedPipes: String, samples: Int, elementBytes: Int,
    timeout: Double)
    extends Command

final case class Ready(pid: Long, spark: String, java: String, heapBytes: Long)
final case class Done(done: Boolean = true)
final case class Failed(error: String)

/** What the source holds, as the ranks count it, too (c/tally.h). */
final case class Tally(elements: Long, bytes: Long, crcSum: BigInt)

/**
 * One measurement; `start` on the clock of System.nanoTime, `cpuNanos` of the one thread that was
 * at work.
 *
 * @param firstNanos
 *   until the first element was there; 0 where nobody has noted it
 * @param sum
 *   of what a program has read, for verification.py; 0 where Spark's task has measured
 * @param peakBytes
 *   memory of the program that has measured; 0 where Spark's task has
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
 * One epoch of one pair: the limit, then the cycle, until the rank has read everything.
 *
 * @param allocatedBytes
 *   memory that the task's thread allocated in the cycle
 * @param waitedForRank
 *   nanoseconds without a free slot
 */
final case class Round(limit: Measured, cycle: Measured, allocatedBytes: Long, waitedForRank: Long)

final case class Rounds(pairs: Seq[Seq[Round]])

/** Nanoseconds from the start of the writing of a block to its release, each. */
final case class RoundTrips(nanos: Seq[Long])
