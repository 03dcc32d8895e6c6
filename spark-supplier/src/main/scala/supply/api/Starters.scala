package supply.api

import java.util.{EnumSet, Set => JavaSet}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{Batch, InputPartition, PartitionReader, PartitionReaderFactory, Scan, ScanBuilder}
import org.apache.spark.sql.types.{BinaryType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import picocli.CommandLine.{Command, Option => Opt}

import supply.core.NamedOptions

/** The option of a read of starters, which Supplier.run of the Python package makes over Spark Connect. */
@Command(name = "starters", sortOptions = false)
private[supply] final class StartersOptions {
  @Opt(
    names = Array("--starters"),
    paramLabel = "HOSTS",
    required = true,
    split = ",",
    description = Array(
      "Hosts, with commas between them. Each gets a task, of which the only row is what Nodes.starter returns."))
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

      override def get(): InternalRow = InternalRow(Nodes.starter(host))

      override def close(): Unit = ()
    }
}
