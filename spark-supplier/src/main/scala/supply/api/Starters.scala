package supply.api

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import scala.jdk.CollectionConverters._

import org.apache.spark.api.java.JavaRDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{Batch, InputPartition, PartitionReader, PartitionReaderFactory, Scan}
import org.apache.spark.sql.types.StructType
import org.apache.spark.supply.{DriverEndpoint, OfApplication, SchedulerState, SparkInternals}
import org.apache.spark.{SparkContext, SparkEnv, TaskContext}

import supply.core.{DriverCalls, FailureText, MisplacedException, PairHeldException}
import supply.run.{Hubs, TaskSlots}
import supply.task.{PinnedTask, PlacedTask, TaskMessage}

/** The tasks that start ranks, one on each host: a job of an RDD, or over Spark Connect a source of rows. */
private[supply] object Starters {
  /** The call of a read that starts ranks, over Spark Connect. */
  private[api] final val Call = "starters"

  /** The description of the job that starts ranks. */
  def name: String = TaskSlots.StartersName

  private[api] val driver = new OfApplication[DriverCalls](sc =>
    new DriverEndpoint(sc, s"supply-starters-${UUID.randomUUID()}")({
      case (run: String, ends: TaskMessage.Ends) => end(sc, run, ends)
    }).calls)

  /** One partition for each host, to be computed there, with one [[Starter]]. It takes the slots of the run. */
  def of(sc: SparkContext, run: String, hosts: java.util.List[String]): JavaRDD[Array[Byte]] = {
    val starter = begin(sc, run)
    val nodes = sc.makeRDD(hosts.asScala.toSeq.map(host => host -> Seq(host))).map(starter(_))
    SparkInternals.coresOnly(sc).fold(nodes)(nodes.withResources).toJavaRDD()
  }

  /** For the tasks of a run, which begin soon. */
  private[api] def begin(sc: SparkContext, run: String): Starter = {
    Hubs.find(run).foreach(_.releaseSlots())
    val calls = driver(sc)
    new Starter(new PlacedTask(new OfRun(run, calls), pauseMillis = 0))
  }

  /** A starter cannot start its ranks. Whether it is a copy of one that may have. */
  private def end(sc: SparkContext, run: String, ends: TaskMessage.Ends): Boolean = {
    val isCopy = SchedulerState.tasks(sc, ends.stage)
      .exists(other => other.partition == ends.place && other.id != ends.task)
    if (!isCopy && ends.cause.isInstanceOf[MisplacedException])
      Hubs.find(run).foreach(_.failures.put(name, ends.cause))
    isCopy
  }

  /** The endpoint is the application's: its questions say of which run they are. */
  private final class OfRun(run: String, driver: DriverCalls) extends DriverCalls {
    override def ask[A](question: java.io.Serializable): A = driver.ask[A](run -> question)
  }

  /** Why the starters of this run have failed; None: none has, or Spark does not know it yet. */
  def failure(sc: SparkContext, run: String): Option[String] =
    SparkInternals.firstFailure(sc, TaskSlots.startersTag(run))
      .map(FailureText.ofTask(_, SparkInternals.hostOf(sc, _)))

  /** Whether the first task for a host ran on another one. No rank of that host has started then, so none has work. */
  def areMisplaced(run: String): Boolean = Hubs.failure(run, name).isDefined
}

/** What starts the ranks of a host, in Spark's task. */
private[supply] final class Starter(task: PlacedTask) extends Serializable {
  /**
   * The host's name, and after a line's end OMP_NUM_THREADS of the node, which PySpark overrides in
   * Python's workers. The state of ranks is gone with their starter, so no retry can replace it.
   */
  def apply(host: String): Array[Byte] = task {
    val what = s"the task that starts the ranks of $host"
    if (TaskContext.get().attemptNumber() > 0)
      throw new PairHeldException(s"$what runs already, or has failed, and cannot be retried")
    if (PinnedTask.host != host) throw new MisplacedException(
      s"$what landed on ${PinnedTask.host}: leave a task slot of $host free, or set spark.locality.wait larger")
    s"$host\n$threads".getBytes(UTF_8)
  }

  /** In standalone clusters Spark overrides it with the cores of one task (SPARK-41188). */
  private def threads: String =
    if (TaskSlots.isStandalone(SparkEnv.get.conf.get("spark.master"))) ""
    else sys.env.getOrElse("OMP_NUM_THREADS", "")
}

/**
 * What [[Starters.Call]] reads: a row for each of its `hosts`, which a [[Starter]] of its `run` returns in
 * a task there.
 */
private[api] final class StartersScan(call: Call, columns: StructType) extends Scan with Batch {
  override def readSchema(): StructType = columns

  override def toBatch: Batch = this

  override def planInputPartitions(): Array[InputPartition] =
    call.words.path("hosts").asScala.map(host =>
      StarterPartition(host.asText): InputPartition).toArray

  override def createReaderFactory(): PartitionReaderFactory =
    new StarterReaders(Starters.begin(call.sc, call.text("run")))
}

private final case class StarterPartition(host: String) extends InputPartition {
  override def preferredLocations(): Array[String] = Array(host)
}

private final class StarterReaders(starter: Starter) extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    new PartitionReader[InternalRow] {
      private val host = partition.preferredLocations().head
      private var isRead = false

      override def next(): Boolean = {
        val isFirst = !isRead
        isRead = true
        isFirst
      }

      override def get(): InternalRow = InternalRow(starter(host))

      override def close(): Unit = ()
    }
}
