package supply.api

import java.util.{EnumSet, Set => JavaSet}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{LocalScan, Scan, ScanBuilder}
import org.apache.spark.sql.types.{BinaryType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** The driver's answer to a call, in one row, for which Spark runs no job. */
private[api] final class Answer(call: => Array[Byte]) extends Table with SupportsRead {
  override def name(): String = "supply answer"

  override val schema: StructType = new StructType().add("answer", BinaryType, nullable = false)

  override def capabilities(): JavaSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () =>
    new AnswerScan(call, schema)
}

private final class AnswerScan(call: => Array[Byte], columns: StructType) extends Scan
    with LocalScan {
  private lazy val answer = call

  override def readSchema(): StructType = columns

  /** Spark asks when it plans the query, and may ask twice. */
  override def rows(): Array[InternalRow] = Array(InternalRow(answer))
}
