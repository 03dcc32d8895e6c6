package supply.bench

import com.fasterxml.jackson.annotation.{JsonSubTypes, JsonTypeInfo}
import com.fasterxml.jackson.annotation.JsonSubTypes.Type

/** A command of bench/engine: one JSON object per line. `do` names the command. */
@JsonTypeInfo(use = JsonTypeInfo.Id.NAME, property = "do")
@JsonSubTypes(Array(
    new Type(value = classOf[Generate], name = "generate"),
    new Type(value = classOf[OpenLmdb], name = "open_lmdb"),
    new Type(value = classOf[Cycle], name = "cycle"),
    new Type(value = classOf[MakeKeyed], name = "make_keyed"),
    new Type(value = classOf[ShuffleKeyed], name = "shuffle_keyed"),
    new Type(value = classOf[SupplyKeyed], name = "supply_keyed")))
sealed trait Command

/** Makes and opens elements of one shape; answers [[Tally]]. */
final case class Generate(
    channels: Int,
    height: Int,
    width: Int,
    totalBytes: Long,
    partitions: Int) extends Command

/** Opens an LMDB that Spark does not persist; answers [[Done]]. */
final case class OpenLmdb(path: String, partitions: Int, inPlace: Boolean) extends Command

/**
 * Supplies `pairs` groups of `share` ranks and measures the baselines ([[Baseline.of]]), and the
 * rings, if there are any; answers [[Rounds]].
 */
final case class Cycle(
    pairs: Int,
    mappedFiles: String,
    namedPipes: String,
    epochs: Int,
    baselines: Seq[Seq[String]],
    timeout: Double,
    rings: Seq[Seq[String]] = Nil,
    resident: Boolean = false,
    residentFolder: Option[String] = None, share: Int = 1) extends Command

/** A command on key-value pairs. */
sealed trait KeyedCommand extends Command

/** Makes and caches them; answers [[KeyedTally]]. */
final case class MakeKeyed(totalBytes: Long, valueBytes: Int, partitions: Int)
    extends KeyedCommand

/** Spark's own shuffle, `group` or `sort`; answers [[Shuffled]]. */
final case class ShuffleKeyed(way: String, reducers: Int, verify: Boolean) extends KeyedCommand

/** Supplies ranks; answers [[Supplied]]. */
final case class SupplyKeyed(ranks: Int, mappedFiles: String, namedPipes: String, timeout: Double)
    extends KeyedCommand

final case class Done(done: Boolean = true)
final case class Failed(error: String)

/** The content of the source, counted as the ranks count it (bench/c/bench.h). */
final case class Tally(elements: Long, bytes: Long, crcSum: BigInt)

/**
 * What an exchange must not change. `bound` ties each value to its key; `inOrder`: so are the keys,
 * over all partitions.
 */
final case class KeyedTally(
    elements: Long, groups: Long, keySum: BigInt, bound: BigInt, inOrder: Boolean)

/** A job of Spark, the rows that it gives, and what they are if that was counted. */
final case class Shuffled(nanos: Long, count: Long, tally: Option[KeyedTally])

/** `start` as System.nanoTime has it. */
final case class Supplied(start: Long)

/**
 * One measurement: `start` as System.nanoTime has it, `cpuNanos` of the one busy thread, `sum` and
 * `readersNanos`: of a measuring program.
 */
final case class Measured(start: Long, nanos: Long, cpuNanos: Long, elements: Long, bytes: Long,
    sum: BigInt = 0, readersNanos: Long = 0)

/** One epoch of one pair: baseline, ring, then cycle, with what its thread allocated and waited. */
final case class Round(baseline: Measured, ring: Option[Measured], cycle: Measured,
    allocatedBytes: Long, waitedForRank: Long)

final case class Rounds(pairs: Seq[Seq[Round]])
