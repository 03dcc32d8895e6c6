package supply.api

import java.nio.charset.StandardCharsets.UTF_8
import java.util.{EnumSet, Set => JavaSet}

import scala.jdk.CollectionConverters._

import org.apache.spark.api.java.JavaRDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{Batch, InputPartition, PartitionReader, PartitionReaderFactory, Scan, ScanBuilder}
import org.apache.spark.sql.types.{BinaryType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.supply.SparkInternals
import org.apache.spark.{SparkContext, SparkEnv, TaskContext}
import picocli.CommandLine.{Command, Option => Opt}

import supply.core.{FailureText, NamedOptions, PlacementException}
import supply.run.TaskSlots
import supply.task.PinnedTask

/** The tasks that start ranks, one on each host: a job of an RDD, or over Spark Connect a source of rows. */
private[supply] object Starters {
  /** The description of the job that starts ranks. */
  def name: String = TaskSlots.StartersName

  /** One partition for each host, to be computed there, with one [[starter]]. */
  def of(sc: SparkContext, hosts: java.util.List[String]): JavaRDD[Array[Byte]] = {
    val nodes = sc.makeRDD(hosts.asScala.toSeq.map(host => host -> Seq(host))).map(starter)
    SparkInternals.coresOnly(sc).fold(nodes)(nodes.withResources).toJavaRDD()
  }

  /**
   * In its task: the host's name, and after a line's end OMP_NUM_THREADS of the node, which PySpark
   * overrides in Python's workers. The state of ranks is gone with their starter, so no retry can
   * replace it.
   */
  def starter(host: String): Array[Byte] = {
    if (TaskContext.get().attemptNumber() > 0) throw new PlacementException(
      s"the task that starts the ranks of $host has failed, and cannot be retried")
    if (PinnedTask.host != host) throw new PlacementException(
      s"the task that starts the ranks of $host landed on ${PinnedTask.host}: leave a task slot of $host free, or set " +
        "spark.locality.wait larger")
    s"$host\n$threads".getBytes(UTF_8)
  }

  /** In standalone clusters Spark overrides it with the cores of one task (SPARK-41188). */
  private def threads: String =
    if (TaskSlots.isStandalone(SparkEnv.get.conf.get("spark.master"))) ""
    else sys.env.getOrElse("OMP_NUM_THREADS", "")

  /** Why the starters of this run have failed; None: none has, or Spark does not know it yet. */
  def failure(sc: SparkContext, run: String): Option[String] =
    SparkInternals.firstFailure(sc, TaskSlots.startersTag(run))
      .map(FailureText.ofTask(_, SparkInternals.hostOf(sc, _)))

  /** Whether the first failure of a starter of this run is one of placement: it ran on another host than its own. */
  def areMisplaced(sc: SparkContext, run: String): Boolean =
    SparkInternals.firstFailure(sc, TaskSlots.startersTag(run))
      .exists(_.contains(classOf[PlacementException].getName))
}

/** The option of a read of starters, which Supplier.run of the Python package makes over Spark Connect. */
@Command(name = "starters", sortOptions = false)
private[supply] final class StartersOptions {
  @Opt(
    names = Array("--starters"),
    paramLabel = "HOSTS",
    required = true,
    split = ",",
    description = Array(
      "Hosts, with commas between them. Each gets a task, of which the only row is what Starters.starter returns."))
  var hosts: Array[String] = _
}

private[supply] object StartersOptions {
  /** The option that tells this read from others. */
  final val Name = "starters"

  def parse(options: Map[String, String]): Seq[String] =
    NamedOptions.parse(new StartersOptions, options).hosts.toSeq
}

/** A row for each host, computed in a task there. */
private[api] final class StartersTable(hosts: Seq[String]) extends Table with SupportsRead {
  override def name(): String = "supply starters"

  override val schema: StructType = new StructType().add("starter", BinaryType, nullable = false)

  override def capabilities(): JavaSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () =>
    new StartersScan(hosts, schema)
}

private final class StartersScan(hosts: Seq[String], columns: StructType) extends Scan
    with Batch {
  override def readSchema(): StructType = columns

  override def toBatch: Batch = this

  override def planInputPartitions(): Array[InputPartition] =
    hosts.map(StarterPartition(_): InputPartition).toArray

  override def createReaderFactory(): PartitionReaderFactory = StarterReaders
}

private final case class StarterPartition(host: String) extends InputPartition {
  override def preferredLocations(): Array[String] = Array(host)
}

private case object StarterReaders extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    new PartitionReader[InternalRow] {
      private val host = partition.preferredLocations().head
      private var isRead = false

      override def next(): Boolean = {
        val isFirst = !isRead
        isRead = true
        isFirst
      }

      override def get(): InternalRow = InternalRow(Starters.starter(host))

      override def close(): Unit = ()
    }
}
