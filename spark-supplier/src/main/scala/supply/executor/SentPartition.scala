package supply.executor

import java.io.ByteArrayOutputStream
import java.lang.ref.SoftReference
import java.nio.ByteBuffer
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicLong

import scala.collection.mutable.ArrayBuffer
import scala.util.control.NonFatal

import org.apache.spark.{Partition, SparkContext, SparkEnv}
import org.apache.spark.broadcast.Broadcast
import org.slf4j.LoggerFactory

/** A partition of the source, as the task of its rank gets it. */
private[executor] sealed trait SentPartition extends Serializable {
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
private[executor] final class PartitionSender(sc: SparkContext, isLocal: Boolean)
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

private[executor] object PartitionSender {
  private val log = LoggerFactory.getLogger(classOf[PartitionSender])

  /** Of local Spark, by sender and index. */
  val kept = new ConcurrentHashMap[Long, Map[Int, Partition]]
  val numbers = new AtomicLong

  /** Half of the smallest limit that Spark allows. */
  private final val BytesInTask = 512 * 1024
}
