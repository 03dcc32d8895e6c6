package supply.executor

import java.io.ByteArrayOutputStream
import java.nio.ByteBuffer

import scala.collection.mutable.ArrayBuffer

import org.apache.spark.{Partition, SparkContext, SparkEnv}
import org.apache.spark.broadcast.Broadcast

/** A partition of the source, as the task of its rank gets it. */
private[executor] sealed trait SentPartition extends Serializable {
  def partition: Partition
}

/** In the task itself. */
private final case class InTask(partition: Partition) extends SentPartition

/** Serialized in those bytes. The task fetches them when it opens the partition. */
private final case class InBroadcast(bytes: Broadcast[Array[Byte]], from: Int, length: Int)
    extends SentPartition {
  override def partition: Partition =
    SparkEnv.get.closureSerializer.newInstance().deserialize[Partition](
      ByteBuffer.wrap(bytes.value, from, length), Thread.currentThread().getContextClassLoader)
}

/**
 * Sends partitions to tasks. Some have the data in them: those of `parallelize`, and of a DataFrame
 * that was made of a local one. A task has all partitions of its rank, and Spark limits its size
 * (spark.rpc.message.maxSize). So only few bytes of them travel in the task, and the others by
 * broadcast.
 */
private[executor] final class PartitionSender(sc: SparkContext) extends AutoCloseable {
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
        val ends = waiting.map(_._3).drop(1) :+ bytes.size
        val broadcast = sc.broadcast(bytes.toByteArray)
        broadcasts += broadcast
        waiting.zip(ends).foreach { case ((index, _, from), end) =>
          sent += index -> InBroadcast(broadcast, from, end - from)
        }
        waiting.clear()
        bytes.reset()
      }
    }
    waiting.foreach { case (index, partition, _) => sent += index -> InTask(partition) }
    sent.result()
  }

  /** Drops the data on all nodes, when the tasks have ended. */
  override def close(): Unit = broadcasts.foreach(_.destroy())
}

private[executor] object PartitionSender {
  /** Half of the smallest limit that Spark allows. */
  private final val BytesInTask = 512 * 1024
}
