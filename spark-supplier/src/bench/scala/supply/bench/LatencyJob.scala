package supply.bench

import org.apache.spark.{SparkContext, TaskContext}

import supply.block.BlockWriter
import supply.lmdb.Datum
import supply.pair.{ConfigFiles, Pair}
import supply.plan.Hostfile
import supply.source.{ElementCursor, ElementWriter}
import supply.task.PinnedTask

/** Measures the round trip of one small block at a time. */
private[bench] final class LatencyJob(sc: SparkContext, command: Latency) {
  def run(): RoundTrips = {
    val latency = command
    RoundTrips(sc.makeRDD(Seq(0), 1).map(_ => LatencyJob.measure(latency).toSeq).collect().head)
  }
}

private object LatencyJob {
  def measure(command: Latency): Array[Long] = {
    val context = TaskContext.get()
    val pair =
      PinnedTask.attach(ConfigFiles(command.mappedFiles, command.namedPipes), Hostfile.oneNode(1),
        0,
        context.attemptNumber(), command.timeout)
    context.addTaskCompletionListener[Unit](_ => pair.close())
    val writer = new BlockWriter(pair, Datum.schema, Some(Datum.Data), blockElements = 1)
    val element = new StampedElement(command.elementBytes)
    val nanos = Array.tabulate(command.samples)(_ => roundTrip(pair, writer, element))
    pair.publishEndOfEpoch(0)
    pair.publishEndOfData()
    pair.awaitAllReleased()
    pair.markEndSeen()
    nanos
  }

  private def roundTrip(pair: Pair, writer: BlockWriter, element: StampedElement): Long = {
    val start = System.nanoTime()
    writer.append(element)
    pair.awaitAllReleased()
    System.nanoTime() - start
  }
}

/** Repeats one element, whose data begins with the time of its writing. */
private final class StampedElement(bytes: Int) extends ElementCursor {
  private val data = new Array[Byte](bytes)

  override def next(): Boolean = true

  override def write(to: ElementWriter): Unit = {
    val start = System.nanoTime()
    to.reserve(Datum.Key, 0)
    to.putInt(Datum.Label, 0)
    to.putInt(Datum.Channels, 1)
    to.putInt(Datum.Height, 1)
    to.putInt(Datum.Width, bytes)
    to.putBoolean(Datum.Encoded, false)
    to.reserve(Datum.Data, bytes).putLong(start).put(data, 8,
      bytes - 8)
    ()
  }

  override def describe: String = s"an element of $bytes bytes"

  override def close(): Unit = ()
}
