package supply.datasource

import java.util.OptionalLong

import org.apache.spark.sql.connector.read.{Batch, InputPartition, PartitionReader, PartitionReaderFactory, Scan, Statistics, SupportsReportStatistics}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch

import supply.core.DriverCalls
import supply.driver.LoadedResults
import supply.executor.{FoundResult, ResultsTask}

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
    new ResultsReaderFactory(columns.fieldNames.map(all.fieldIndex), loaded.misplaced)

  /** Of the columns that are read, a share of the file by Spark's estimate of their widths. */
  override def estimateStatistics(): Statistics = new Statistics {
    override def sizeInBytes(): OptionalLong =
      OptionalLong.of(math.max(1,
          (loaded.bytes.toDouble * columns.defaultSize / all.defaultSize).toLong))

    override def numRows(): OptionalLong = OptionalLong.of(loaded.elements)
  }
}

private final case class ResultsPartition(file: FoundResult, @transient loaded: LoadedResults)
    extends InputPartition with LoadedResults.Part {
  override def preferredLocations(): Array[String] = Array(file.host)
}

private final class ResultsReaderFactory(columns: Array[Int], driver: DriverCalls)
    extends PartitionReaderFactory {
  override def supportColumnarReads(partition: InputPartition): Boolean = true

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] =
    ResultsTask {
      new ResultsReader(partition.asInstanceOf[ResultsPartition].file, columns, driver)
    }

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    throw new UnsupportedOperationException("results are read as columns")
}
