package supply.executor

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID
import java.util.zip.CRC32

import supply.core.ConfigException
import supply.pair.Pair
import supply.plan.{Plan, Shuffle}

/** What one pinned job supplies of a stream. */
sealed trait StreamPart {

  /** Its epochs of all these partitions. */
  def plan(partitions: Int, ranks: Int): Plan

  /** Whether END_OF_DATA follows them. */
  def isEnd: Boolean

  /**
   * Makes sure that this part is what follows what the rank has, and tells it the plan of this
   * part.
   */
  def follow(pair: Pair, plan: Long): Unit
}

object StreamPart {

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

    /**
     * A rank without a position takes what comes. Another one has had all batches before this one,
     * and perhaps this one, too.
     */
    private def requireNext(pair: Pair, plan: Long): Unit = {
      val position = pair.position
      val had = pair.plan.toInt - 1
      val has = plan.toInt - 1
      if (position.epoch < number) {
        throw new ConfigException(
          s"${pair.name}: the rank wants to go on in batch ${position.epoch} of the stream, which has come to batch " +
            s"$number: Spark does not give a batch again that every rank has had. Start the rank without its position, and it gets what comes " +
            "from here on")
      }
      if (position.epoch > number + 1 || (position.epoch > number && position.inside.isDefined)) {
        throw new ConfigException(
          s"${pair.name}: the rank has had batches of the stream up to ${position.epoch - 1}, and the query goes on " +
            s"with batch $number: is its checkpoint an old copy? Start the rank anew, without a position")
      }
      if (position.epoch == number && position.inside.isDefined && had != has) {
        throw new ConfigException(
          s"${pair.name}: batch $number has $has partitions, and had $had when the rank got a part of it, so that its " +
            "rows are in other places: start the query with the cores and settings that it had (spark.default.parallelism, spark.sql.*), or " +
            "the ranks anew, without their positions")
      }
    }
  }

  case object End extends StreamPart {
    override def plan(partitions: Int, ranks: Int): Plan =
      Plan(partitions, ranks, epochs = 0, seed = 0)

    override def isEnd: Boolean = true

    override def follow(pair: Pair, plan: Long): Unit = requireSameStream(pair, plan)
  }

  /**
   * The upper half is of the stream, the lower one of a batch: a position inside of a batch means
   * something only where the batch has the same partitions.
   *
   * @param checkpoint
   *   what Spark calls the query's id: the same for as long as it has its checkpoint
   */
  def fingerprint(checkpoint: UUID, ranks: Int, partitions: Int): Long = {
    val sum = new CRC32
    sum.update(s"$checkpoint $ranks".getBytes(UTF_8))
    (sum.getValue << 32) | (partitions + 1)
  }

  private def requireSameStream(pair: Pair, plan: Long): Unit =
    if (pair.plan != 0 && (pair.plan >>> 32) != (plan >>> 32)) {
      throw new ConfigException(
        s"${pair.name}: the rank has data, or a position, of something else than this stream: of a query with another " +
          "checkpoint, with another number of ranks, or of a run. Start the rank anew, without a position")
    }
}
