package supply.results

import java.util.{EnumSet, OptionalLong, Set => JavaSet}

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{Batch, InputPartition, PartitionReader, PartitionReaderFactory, Scan, ScanBuilder, Statistics, SupportsPushDownRequiredColumns, SupportsReportStatistics}
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarBatch}

import supply.core.{ContractException, MisplacedException}
import supply.plan.RankPlacement
import supply.protocol.{Column, Format}
import supply.rows.SparkTypes
import supply.task.{PinnedTask, PlacedTask}

/** A result of ranks. */
private[supply] final class ResultsTable(val loaded: LoadedResults) extends Table
    with SupportsRead {
  override def name(): String = s"supply result ${loaded.name}"

  override val schema: StructType = StructType(loaded.schema.columns.map { column =>
    StructField(column.name, SparkTypes.typeOf(column).get, column.nullable)
  })

  override def capabilities(): JavaSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    new ScanBuilder with SupportsPushDownRequiredColumns {
      private var columns = schema

      /** Whole columns, also if Spark needs only fields of them: it takes these out of what readSchema says. */
      override def pruneColumns(required: StructType): Unit =
        columns = StructType(required.fieldNames.map(schema(_)))

      override def build(): Scan = ResultsScan(loaded, schema, columns)
    }
}

/**
 * A scan of some columns: a partition for each rank that has written rows, on its node. Two equal
 * scans are computed once in a plan.
 */
private final case class ResultsScan(loaded: LoadedResults, all: StructType, columns: StructType)
    extends Scan with Batch with SupportsReportStatistics {
  private val partitions = loaded.files.filter(_.elements > 0)

  override def readSchema(): StructType = columns

  override def description(): String =
    s"supply result ${loaded.name} of ${loaded.files.size} ranks [${columns.fieldNames.mkString(", ")}]"

  override def toBatch: Batch = this

  override def planInputPartitions(): Array[InputPartition] =
    partitions.map(file => ResultsPartition(file, loaded): InputPartition).toArray

  override def createReaderFactory(): PartitionReaderFactory =
    new ResultsReaderFactory(columns.fieldNames.map(all.fieldIndex), loaded.reading)

  override def estimateStatistics(): Statistics = new Statistics {
    override def sizeInBytes(): OptionalLong = OptionalLong.of(math.max(1, bytes))

    override def numRows(): OptionalLong = OptionalLong.of(loaded.elements)
  }

  /** Columns of numbers have their widths, and the others may have all the rest of the files. */
  private def bytes: Long = {
    val (numbers, others) = loaded.schema.columns.partition(Format.of(_).isInstanceOf[Format.Fixed])
    val (read, left) = numbers.partition(column => columns.fieldNames.contains(column.name))
    def sum(of: Seq[Column]) =
      loaded.elements * of.map(Format.of(_)).collect { case Format.Fixed(width) =>
        width.toLong
      }.sum
    if (others.exists(column => columns.fieldNames.contains(column.name))) loaded.bytes - sum(left)
    else sum(read)
  }
}

private final case class ResultsPartition(file: FoundResult, @transient loaded: LoadedResults)
    extends InputPartition with LoadedResults.Part {
  override def preferredLocations(): Array[String] = Array(file.host)
}

private final class ResultsReaderFactory(columns: Array[Int], reading: PlacedTask)
    extends PartitionReaderFactory {
  override def supportColumnarReads(partition: InputPartition): Boolean = true

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] =
    ResultsTask {
      new ResultsReader(partition.asInstanceOf[ResultsPartition].file, columns, reading)
    }

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    throw new UnsupportedOperationException("results are read as columns")
}

/** Reads the blocks of one rank, each as a batch over the mapped memory. `columns`: which ones. */
private final class ResultsReader(file: FoundResult, columns: Array[Int], reading: PlacedTask)
    extends PartitionReader[ColumnarBatch] {
  reading(requireNode())
  private val use = OpenResults.use(file.path, file.generation)
  // Strings of the last batch may be used until the end of the task.
  TaskContext.get().addTaskCompletionListener[Unit](_ => use.close())
  // The JVM's error for memory that is gone names no file. It ends the executor, whose next attempts Spark may refuse.
  TaskContext.get().addTaskFailureListener((_, _) => use.requireWhole())
  if (use.header.elements != file.elements)
    throw new ContractException(
      s"${file.path.file} has ${use.header.elements} elements, and had ${file.elements} when it was loaded")

  private var index = 0
  private var elements = 0L
  private var batch: ColumnarBatch = _

  override def next(): Boolean = {
    use.requireWhole()
    val more = index < use.header.blockCount
    if (more) {
      val block = use.block(index, elements)
      val vectors = columns.map(column => block.vector(column): ColumnVector)
      batch = new ColumnarBatch(vectors, block.elements)
      index += 1
      elements += block.elements
    }
    more
  }

  override def get(): ColumnarBatch = batch

  override def close(): Unit = ()

  private def requireNode(): Unit = {
    val here = PinnedTask.host
    if (here != file.host && !RankPlacement(Some(file.host), 0).isOn(here))
      throw new MisplacedException(
        s"the task of the result of rank ${file.rank} landed on $here, but its file is on ${file.host} " +
          s"(${file.path.file}): Spark needs an executor there; set spark.locality.wait to a minute or more")
  }
}
