package supply.executor

import org.apache.spark.{NarrowDependency, Partition, SparkContext, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.supply.SparkInternals

import supply.core.SourceException
import supply.data.{ElementCursor, ShuffledCursor, Source}
import supply.plan.{Hostfile, Plan, Share, Shuffle}

/**
 * One partition of the source in one epoch, not yet opened.
 *
 * @param isOrdered
 *   whether its elements come in the same order each time they are computed
 * @param share
 *   how much of it is supplied, unless all it has
 */
final case class PlannedPartition(index: Int, isOrdered: Boolean, share: Option[Share],
    open: () => ElementCursor)

/** What one rank gets in one epoch, in order; may be walked more than once. */
final class PlannedEpoch(val epoch: Int, walk: () => Iterator[PlannedPartition]) {
  def partitions: Iterator[PlannedPartition] = walk()
}

private final case class RankPartition(index: Int, parents: Map[Int, Partition]) extends Partition

/**
 * One partition per rank, whose index is the rank; it prefers the rank's host and depends narrowly
 * on the source partitions that the plan gives that rank. Its one element are the rank's epochs,
 * which may be walked more than once, and are made as they are walked: there may be very many.
 */
final class PinnedRDD(sc: SparkContext, source: Source, plan: Plan, hosts: Hostfile)
    extends RDD[Iterable[PlannedEpoch]](
      sc,
      Seq(new NarrowDependency[Any](source.rdd.asInstanceOf[RDD[Any]]) {
        override def getParents(rank: Int): Seq[Int] = plan.partitionsOf(rank)
      })) {
  if (SparkInternals.isIndeterminate(source.rdd)) {
    throw new SourceException(
      "Spark may compute other rows each time it computes this data again (a repartition of rows in no certain " +
        "order, for one): write it to files first, and read these")
  }

  /** Only the driver can say it. */
  private val isOrdered = SparkInternals.isOrdered(source.rdd)

  override protected def getPartitions: Array[Partition] = {
    val parents = source.rdd.partitions
    Array.tabulate(plan.ranks) { rank =>
      RankPartition(rank, plan.partitionsOf(rank).map(p => p -> parents(p)).toMap): Partition
    }
  }

  override protected def getPreferredLocations(partition: Partition): Seq[String] =
    hosts.places(partition.index).host.toSeq

  override def compute(
      partition: Partition, context: TaskContext): Iterator[Iterable[PlannedEpoch]] = {
    val RankPartition(rank, parents) = partition.asInstanceOf[RankPartition]
    Iterator.single(plan.epochNumbers.view.map { epoch =>
      new PlannedEpoch(
        epoch,
        () =>
          plan.shares(rank, epoch).iterator.map { case (index, share) =>
            PlannedPartition(index, isOrdered, share,
              () => shuffled(source.open(parents(index), context), index, epoch))
          }
      )
    })
  }

  private def shuffled(cursor: ElementCursor, partition: Int, epoch: Int): ElementCursor =
    plan.shuffle match {
      case Shuffle.Elements(buffer) =>
        ShuffledCursor(cursor, buffer, plan.elementSeed(partition, epoch))
      case Shuffle.Partitions | Shuffle.Off => cursor
    }
}
