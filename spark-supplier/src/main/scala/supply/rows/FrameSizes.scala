package supply.rows

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.BlockMetaData
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.{CoalescedPartitionSpec, FileSourceScanExec, ShufflePartitionSpec, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, AQEShuffleReadExec, QueryStageExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.datasources.{FilePartition, FileScanRDD}
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.supply.SparkInternals

import supply.core.Hint
import supply.source.PartitionSizes

/**
 * What Spark knows of the sizes of a DataFrame's partitions before it computes the rows: of files, of
 * its cache, and of stages that it has run. Of operators in between they are an estimate.
 */
private[rows] object FrameSizes {
  /** Reading more footers would take too long. */
  private final val MostFooters = 64

  def of(data: DataFrame): Option[PartitionSizes] =
    Hint("how large its partitions are")(of(data.queryExecution.executedPlan))

  private def of(plan: SparkPlan): Option[PartitionSizes] = plan match {
    case adaptive: AdaptiveSparkPlanExec => of(adaptive.finalPhysicalPlan)
    case read: AQEShuffleReadExec => ofSpecs(read.partitionSpecs)
    case stage: ShuffleQueryStageExec => stage.mapStats.map(s => bytes(s.bytesByPartitionId.toSeq))
    case stage: QueryStageExec => of(stage.plan)
    case scan: InMemoryTableScanExec => ofCache(scan)
    case scan: FileSourceScanExec => ofFiles(scan)
    case _: Exchange => None
    // One that changes the number of partitions has no sizes: Imbalance compares the number.
    case narrow: UnaryExecNode => of(narrow.child)
    case _ => None
  }

  private def bytes(sizes: Iterable[Long]) = PartitionSizes(sizes.toIndexedSeq, "bytes")

  private def ofSpecs(specs: collection.Seq[ShufflePartitionSpec]): Option[PartitionSizes] = {
    val sizes = specs.collect { case CoalescedPartitionSpec(_, _, Some(size)) => size }
    if (sizes.size == specs.size) Some(bytes(sizes)) else None
  }

  private def ofCache(scan: InMemoryTableScanExec): Option[PartitionSizes] = {
    val cache = scan.relation.cacheBuilder
    if (cache.isCachedColumnBuffersLoaded)
      SparkInternals.storedBytes(cache.cachedColumnBuffers).map(bytes(_))
    else None
  }

  private def ofFiles(scan: FileSourceScanExec): Option[PartitionSizes] = scan.inputRDD match {
    case files: FileScanRDD =>
      val splits = files.filePartitions.flatMap(_.files)
      val paths = splits.map(_.filePath).distinct
      // A row group is in one split: the other splits of a file with one row group have no rows.
      if (scan.relation.fileFormat.isInstanceOf[ParquetFileFormat] && splits.size > paths.size &&
        paths.size <= MostFooters)
        Some(rowsOf(files.filePartitions, files.sparkContext.hadoopConfiguration))
      else Some(bytes(files.filePartitions.map(_.files.map(_.length).sum)))
    case _ => None
  }

  private def rowsOf(
      partitions: collection.Seq[FilePartition], conf: Configuration): PartitionSizes = {
    val groups = partitions.flatMap(_.files).map(_.filePath.toPath).distinct.map(path =>
      path -> rowGroups(path, conf)).toMap
    PartitionSizes(
      partitions.map(_.files.map { split =>
        // Parquet reads a row group where its middle is.
        groups(split.filePath.toPath).filter { group =>
          val middle = group.getStartingPos + group.getCompressedSize / 2
          split.start <= middle && middle < split.start + split.length
        }.map(_.getRowCount).sum
      }.sum).toIndexedSeq,
      "rows")
  }

  private def rowGroups(path: Path, conf: Configuration): Seq[BlockMetaData] = {
    val reader = ParquetFileReader.open(HadoopInputFile.fromPath(path, conf))
    try reader.getRowGroups.asScala.toSeq
    finally reader.close()
  }
}
