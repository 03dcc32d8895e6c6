package supply.task

import java.io.ByteArrayOutputStream
import java.lang.ref.SoftReference
import java.nio.ByteBuffer
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable.ArrayBuffer
import scala.util.control.NonFatal

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.rdd.RDD
import org.apache.spark.supply.PartitionContext
import org.apache.spark.{NarrowDependency, Partition, SparkContext, SparkEnv, TaskContext}
import org.slf4j.LoggerFactory

import supply.core.SourceException
import supply.plan.{Part, Plan, Share, Shuffle}
import supply.source.{ElementCursor, Source}

/**
 * A partition of the source in one epoch, not yet opened, without the first `done` elements, which
 * an earlier run has supplied. `isOrdered`: Spark computes its elements in the same order each
 * time. `share`: how much of it is supplied; None: all.
 */
private[supply] final case class PlannedPartition(
    index: Int, done: Long, isOrdered: Boolean, share: Option[Share], open: Opening)

/** Opens a partition for `body`, and closes it: what Spark holds for it is then free. */
private[supply] trait Opening {
  def apply[A](body: ElementCursor => A): A
}

/**
 * What one rank gets in one epoch, in order. It can be walked more than once. `isRest`: an earlier
 * run has supplied the other elements of the epoch. `sequenceFrom`: the elements are numbered through
 * all partitions, and this is the first one to supply; None: in each partition.
 */
private[supply] final class PlannedEpoch(val epoch: Int, val isRest: Boolean,
    val sequenceFrom: Option[Long],
    walk: () => Iterator[PlannedPartition]) {
  def partitions: Iterator[PlannedPartition] = walk()
}

private final case class RankPartition(index: Int, parents: Map[Int, SentPartition])
    extends Partition

/**
 * One partition per rank, whose index is the rank. It prefers the rank's hosts, and depends narrowly
 * on the source partitions that the plan gives that rank. Its one element is a view of the rank's
 * epochs, because there can be very many; it can be walked more than once.
 */
private[supply] final class PinnedRDD private (sc: SparkContext, source: Source, plan: Plan,
    @transient private val preferred: Int => Seq[String])
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
  if (plan.globalBatch.isDefined && !isOrdered)
    throw new SourceException(
      "with --global-batch (order='global') the task of each node computes all rows, and Spark computes these in no certain " +
        "order (they come from a shuffle): write the data to files first, and read these")

  @transient private val sender = new PartitionSender(sc, sc.isLocal)

  override protected def getPartitions: Array[Partition] = {
    val parents = source.rdd.partitions
    def sent(rank: Int) = sender.send(plan.partitionsEver(rank).map(p => p -> parents(p)))
    // All ranks have the same ones. They are sent once.
    lazy val ofAll = sent(0)
    Array.tabulate(plan.ranks)(rank =>
      RankPartition(rank, if (plan.globalBatch.isDefined) ofAll else sent(rank)))
  }

  override protected def getPreferredLocations(partition: Partition): Seq[String] =
    preferred(partition.index)

  override def compute(
      partition: Partition, context: TaskContext): Iterator[Iterable[PlannedEpoch]] = {
    val RankPartition(rank, parents) = partition.asInstanceOf[RankPartition]
    Iterator.single(plan.epochNumbers.view.map { epoch =>
      new PlannedEpoch(
        epoch,
        plan.isRest(epoch),
        plan.sequenceFrom(epoch),
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
        source.openShuffled(partition, context, buffer, plan.elementSeed(index, epoch))
      case Shuffle.Partitions | Shuffle.All(_) | Shuffle.Off =>
        source.open(partition, context)
    }
}

private[supply] object PinnedRDD {
  /** Runs `body`, and then drops what the tasks got by broadcast. `preferred`: the hosts of each rank. */
  def using[A](sc: SparkContext, source: Source, plan: Plan, preferred: Int => Seq[String])(
      body: PinnedRDD => A): A = {
    val rdd = new PinnedRDD(sc, source, plan, preferred)
    try body(rdd)
    finally rdd.sender.close()
  }
}

/** A partition of the source, as the task of its rank gets it. */
private[task] sealed trait SentPartition extends Serializable {
  def partition: Partition
}

/** In the task itself. */
private final case class InTask(partition: Partition) extends SentPartition

/**
 * Serialized elsewhere, until the task opens it. The task keeps its copy for later epochs if there
 * is memory.
 */
private abstract class FetchedPartition extends SentPartition {
  @transient private var copy: SoftReference[Partition] = _

  protected def serialized: ByteBuffer

  override def partition: Partition =
    Option(copy).flatMap(kept => Option(kept.get)).getOrElse {
      val made = SparkEnv.get.closureSerializer.newInstance().deserialize[Partition](
        serialized, Thread.currentThread().getContextClassLoader)
      copy = new SoftReference(made)
      made
    }
}

private final case class InBroadcast(bytes: Broadcast[Array[Byte]], from: Int, length: Int)
    extends FetchedPartition {
  override protected def serialized: ByteBuffer = ByteBuffer.wrap(bytes.value, from, length)
}

/** In this JVM, because Spark is local. The task takes a copy, as each task does. */
private final case class InThisProcess(sender: Long, index: Int) extends FetchedPartition {
  override protected def serialized: ByteBuffer =
    SparkEnv.get.closureSerializer.newInstance().serialize(PartitionSender.kept.get(sender)(index))
}

/**
 * Sends partitions to tasks. Some have the data in them: those of `parallelize`, and of a DataFrame
 * that was made of a local one. A task has all partitions of its rank, and Spark limits its size
 * (spark.rpc.message.maxSize). So only few bytes of them travel in the task, and the others by
 * broadcast. Local Spark has no such limit, but one heap for the data and all copies: tasks then
 * take the driver's partitions, one at a time.
 */
private[task] final class PartitionSender(sc: SparkContext, isLocal: Boolean)
    extends AutoCloseable {
  private val number = PartitionSender.numbers.incrementAndGet()
  private val broadcasts = new ArrayBuffer[Broadcast[Array[Byte]]]

  /** What to put into one task for its partitions. */
  def send(partitions: Seq[(Int, Partition)]): Map[Int, SentPartition] = {
    val serializer = SparkEnv.get.closureSerializer.newInstance()
    val sent = Map.newBuilder[Int, SentPartition]
    // Of the partitions that are not sent yet: their bytes, and where each one begins there.
    val bytes = new ByteArrayOutputStream
    val waiting = new ArrayBuffer[(Int, Partition, Int)]
    partitions.foreach { case (index, partition) =>
      waiting += ((index, partition, bytes.size))
      val stream = serializer.serializeStream(bytes)
      try stream.writeObject(partition)
      finally stream.close()
      if (bytes.size > PartitionSender.BytesInTask) {
        sent ++= (if (isLocal) keep(waiting) else broadcast(waiting, bytes.toByteArray))
        waiting.clear()
        bytes.reset()
      }
    }
    waiting.foreach { case (index, partition, _) => sent += index -> InTask(partition) }
    sent.result()
  }

  private def keep(waiting: Iterable[(Int, Partition, Int)]): Seq[(Int, SentPartition)] = {
    val partitions = waiting.map { case (index, partition, _) => index -> partition }.toMap
    PartitionSender.kept.merge(number, partitions, _ ++ _)
    partitions.keys.map(index => index -> InThisProcess(number, index)).toSeq
  }

  private def broadcast(
      waiting: Iterable[(Int, Partition, Int)], bytes: Array[Byte]): Seq[(Int, SentPartition)] = {
    val sent = sc.broadcast(bytes)
    broadcasts += sent
    val ends = waiting.map(_._3).drop(1).toSeq :+ bytes.length
    waiting.zip(ends).map { case ((index, _, from), end) =>
      index -> InBroadcast(sent, from, end - from)
    }.toSeq
  }

  /** Drops the data on all nodes, when the tasks have ended. */
  override def close(): Unit = {
    PartitionSender.kept.remove(number)
    broadcasts.foreach { sent =>
      // If Spark has stopped, its data is gone, and that failure is the one to report.
      try sent.destroy()
      catch { case NonFatal(e) => PartitionSender.log.info(s"cannot drop $sent: $e") }
    }
  }
}

private[task] object PartitionSender {
  private val log = LoggerFactory.getLogger(classOf[PartitionSender])

  /** Of local Spark, by sender and index. */
  val kept = new ConcurrentHashMap[Long, Map[Int, Partition]]
  val numbers = new AtomicLong

  /** Half of the smallest limit that Spark allows. */
  private final val BytesInTask = 512 * 1024
}
