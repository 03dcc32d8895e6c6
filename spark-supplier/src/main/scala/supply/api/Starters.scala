package supply.api

import java.util.{EnumSet, Set => JavaSet}

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{Batch, InputPartition, PartitionReader, PartitionReaderFactory, Scan, ScanBuilder}
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.unsafe.types.UTF8String
import picocli.CommandLine.{Command, Option => Opt}

import supply.core.{ConfigException, NamedOptions}
import supply.task.PinnedTask

/** The option of a read of starters, which Supplier.run of the Python package makes. */
@Command(name = "starters", sortOptions = false)
private[supply] final class StartersOptions {
  @Opt(names = Array("--starters"), paramLabel = "N", required = true,
    description = Array("Number of tasks that offer to start ranks, each where Spark has a core."))
  var starters: Int = _
}

private[supply] object StartersOptions {
  /** The option that tells this read from others. */
  final val Name = "starters"

  def parse(options: Map[String, String]): Int = {
    val number = NamedOptions.parse(new StartersOptions, options).starters
    if (number < 1) throw new ConfigException(s"$Name is $number: it must be at least 1")
    number
  }
}

/** A row for each starter, computed in its task: the executor, and what it has for ranks. */
private[api] final class StartersTable(starters: Int) extends Table with SupportsRead {
  override def name(): String = "supply starters"

  override val schema: StructType =
    StartersTable.Columns.foldLeft(new StructType)((columns, name) =>
      columns.add(name, StringType, nullable = false))

  override def capabilities(): JavaSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () =>
    new StartersScan(starters, schema)
}

private object StartersTable {
  val Columns = Seq("host", "executor", "threads", "gpus")

  /** In an executor; PySpark overrides OMP_NUM_THREADS in its workers. */
  def here(): Seq[String] = Seq(
    PinnedTask.host,
    SparkEnv.get.executorId,
    sys.env.getOrElse("OMP_NUM_THREADS", ""),
    TaskContext.get().resources().get("gpu").fold("")(_.addresses.mkString(",")))
}

private final class StartersScan(starters: Int, schema: StructType) extends Scan with Batch {
  override def readSchema(): StructType = schema

  override def toBatch: Batch = this

  override def planInputPartitions(): Array[InputPartition] =
    Array.tabulate(starters)(number => StarterPartition(number))

  override def createReaderFactory(): PartitionReaderFactory = new StarterReaders
}

private final case class StarterPartition(number: Int) extends InputPartition

private final class StarterReaders extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    new PartitionReader[InternalRow] {
      private var isRead = false

      override def next(): Boolean = {
        val isFirst = !isRead
        isRead = true
        isFirst
      }

      override def get(): InternalRow =
        InternalRow.fromSeq(StartersTable.here().map(UTF8String.fromString))

      override def close(): Unit = ()
    }
}
