package supply.task

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID
import java.util.zip.CRC32

import supply.core.{ConfigException, SupplyException}
import supply.pair.{ConfigFiles, Pair}
import supply.plan.{Groups, Hostfile, Plan, Shuffle}

/** What one pinned job supplies of a stream. */
private[supply] sealed trait StreamPart {
  /** The plan of this part, for a source of `partitions` partitions. */
  def plan(partitions: Int, ranks: Int): Plan

  /** Whether END_OF_DATA follows it. */
  def isEnd: Boolean

  /** Checks that this part follows what the rank has, and writes its plan for the rank. */
  def follow(pair: Pair, plan: Long): Unit
}

private[supply] object StreamPart {
  /** A batch is an epoch. */
  final case class Batch(number: Int) extends StreamPart {
    override def plan(partitions: Int, ranks: Int): Plan =
      Plan(partitions, ranks, epochs = 1, seed = 0, Shuffle.Off, firstEpoch = number)

    override def isEnd: Boolean = false

    override def follow(pair: Pair, plan: Long): Unit = {
      requireSameStream(pair, plan)
      if (pair.plan != 0) requireNext(pair, plan)
      pair.plan = plan
    }

    /** A rank without a position takes what comes; others must have all earlier batches. */
    private def requireNext(pair: Pair, plan: Long): Unit = {
      val position = pair.position
      val had = pair.plan.toInt - 1
      val has = plan.toInt - 1
      if (position.epoch < number)
        throw new ConfigException(
          s"${pair.name}: the rank wants to resume in batch ${position.epoch} of the stream, which is at batch " +
            s"$number: Spark does not repeat a batch that every rank has received. Start the rank without its position: it then gets " +
            "the batches from here on")
      if (position.epoch > number + 1 || (position.epoch > number && position.inside.isDefined))
        throw new ConfigException(
          s"${pair.name}: the rank has received the batches of the stream up to ${position.epoch - 1}, and the query resumes " +
            s"with batch $number: is its checkpoint an old copy? Start the rank again, without a position")
      if (position.epoch == number && position.inside.isDefined && had != has)
        throw new ConfigException(
          s"${pair.name}: batch $number has $has partitions, and had $had when the rank got a part of it, so its " +
            "rows are in other places: start the query with the cores and settings that it had (spark.default.parallelism, spark.sql.*), or " +
            "start the ranks again, without their positions")
    }
  }

  case object End extends StreamPart {
    override def plan(partitions: Int, ranks: Int): Plan =
      Plan(partitions, ranks, epochs = 0, seed = 0)

    override def isEnd: Boolean = true

    override def follow(pair: Pair, plan: Long): Unit = requireSameStream(pair, plan)
  }

  /**
   * The upper half identifies the stream by Spark's id of the query, the lower one a batch's
   * partitions: with others, a position inside a batch is not valid.
   */
  def fingerprint(checkpoint: UUID, ranks: Int, partitions: Int): Long = {
    val sum = new CRC32
    sum.update(s"$checkpoint $ranks".getBytes(UTF_8))
    (sum.getValue << 32) | (partitions + 1)
  }

  private def requireSameStream(pair: Pair, plan: Long): Unit =
    if (pair.plan != 0 && (pair.plan >>> 32) != (plan >>> 32))
      throw new ConfigException(
        s"${pair.name}: the rank has data, or a position, of something else than this stream: of a query with another " +
          "checkpoint, of one with another number of ranks, or of a run. Start the rank again, without a position")
}

/** Restarts the timeout of this node's ranks: attaches to each ring without a task. */
private[supply] final class StreamSignal(
    configFiles: ConfigFiles, hosts: Hostfile, groups: Groups, run: Long) extends Serializable {
  def send(): Unit =
    hosts.ranksOn(PinnedTask.host).foreach { group =>
      val place = hosts.places(group)
      try {
        val pairs = PinnedTask.pairs(configFiles, place, groups.ranks(group))
        if (pairs.forall { case (_, paths) => Pair.hasRank(paths) })
          PinnedTask.attach(pairs, place, 0, timeout = 0, run).close()
      } catch { case _: SupplyException => () } // The next batch fails with the same error.
    }
}
