package supply.executor

import org.apache.spark.{NarrowDependency, Partition, SparkContext, TaskContext}
import org.apache.spark.rdd.RDD
import org.apache.spark.supply.PartitionContext

import supply.core.SourceException
import supply.data.{ElementCursor, ShuffledCursor, Source}
import supply.plan.{Hostfile, Part, Plan, Share, Shuffle}

/**
 * A partition of the source in one epoch, not yet opened, without the first `done` elements, which
 * an earlier run has supplied. `isOrdered`: Spark computes its elements in the same order each
 * time. `share`: how much of it is supplied; None: all.
 */
final case class PlannedPartition(
    index: Int, done: Long, isOrdered: Boolean, share: Option[Share], open: Opening)

/** Opens a partition for `body`, and closes it: what Spark holds for it is then free. */
trait Opening {
  def apply[A](body: ElementCursor => A): A
}

/**
 * What one rank gets in one epoch, in order. It can be walked more than once. `isRest`: an earlier
 * run has supplied the other elements of the epoch.
 */
final class PlannedEpoch(val epoch: Int, val isRest: Boolean,
    walk: () => Iterator[PlannedPartition]) {
  def partitions: Iterator[PlannedPartition] = walk()
}

private final case class RankPartition(index: Int, parents: Map[Int, SentPartition])
    extends Partition

/**
 * One partition per rank, whose index is the rank. It prefers the rank's host, and depends narrowly
 * on the source partitions that the plan gives that rank. Its one element is a view of the rank's
 * epochs, because there can be very many; it can be walked more than once.
 */
final class PinnedRDD private (sc: SparkContext, source: Source, plan: Plan, hosts: Hostfile)
    extends RDD[Iterable[PlannedEpoch]](
      sc,
      Seq(new NarrowDependency[Any](source.rdd.asInstanceOf[RDD[Any]]) {
        override def getParents(rank: Int): Seq[Int] = plan.partitionsEver(rank)
      })) {
  /** Of the source, by its name: Spark hides the type. Tasks cannot compute it. */
  private val determinism = getOutputDeterministicLevel.toString
  if (determinism == "INDETERMINATE")
    throw new SourceException(
      "Spark may compute other rows each time it computes this data again (for example, it repartitions rows that " +
        "have no certain order, with spark.sql.execution.sortBeforeRepartition=false): write it to files first, and read these")

  private val isOrdered = determinism == "DETERMINATE" || source.isOrdered

  @transient private val sender = new PartitionSender(sc, sc.isLocal)

  override protected def getPartitions: Array[Partition] = {
    val parents = source.rdd.partitions
    Array.tabulate(plan.ranks) { rank =>
      RankPartition(rank, sender.send(plan.partitionsEver(rank).map(p => p -> parents(p))))
    }
  }

  @transient private lazy val preferredHosts = PreferredHosts.of(sparkContext, hosts)

  override protected def getPreferredLocations(partition: Partition): Seq[String] =
    hosts.places(partition.index).host.toSeq.flatMap(preferredHosts)

  override def compute(
      partition: Partition, context: TaskContext): Iterator[Iterable[PlannedEpoch]] = {
    val RankPartition(rank, parents) = partition.asInstanceOf[RankPartition]
    Iterator.single(plan.epochNumbers.view.map { epoch =>
      new PlannedEpoch(
        epoch,
        plan.isRest(epoch),
        () =>
          plan.parts(rank, epoch).iterator.map { case Part(index, done, share) =>
            val opening = new Opening {
              override def apply[A](body: ElementCursor => A): A =
                PartitionContext.use(context, index, plan.partitions) { own =>
                  val cursor = open(parents(index).partition, own, index, epoch)
                  try body(cursor)
                  finally cursor.close()
                }
            }
            PlannedPartition(index, done, isOrdered, share, opening)
          })
    })
  }

  private def open(
      partition: Partition, context: TaskContext, index: Int, epoch: Int): ElementCursor =
    plan.shuffle match {
      case Shuffle.Elements(buffer) =>
        new ShuffledCursor(source.open(partition, context), buffer, plan.elementSeed(index, epoch))
      case Shuffle.Partitions | Shuffle.All(_) | Shuffle.Off =>
        source.openInOrder(partition, context)
    }
}

object PinnedRDD {
  /** Runs `body`, and then drops what the tasks got by broadcast. */
  def using[A](sc: SparkContext, source: Source, plan: Plan, hosts: Hostfile)(
      body: PinnedRDD => A): A = {
    val rdd = new PinnedRDD(sc, source, plan, hosts)
    try body(rdd)
    finally rdd.sender.close()
  }
}
