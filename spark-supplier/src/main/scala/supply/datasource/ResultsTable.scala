package supply.datasource

import java.util.{Collections, EnumSet, Set => JavaSet}

import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability}
import org.apache.spark.sql.connector.read.{Scan, ScanBuilder, SupportsPushDownRequiredColumns}
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import supply.driver.LoadedResults
import supply.types.SparkTypes

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

      override def pruneColumns(required: StructType): Unit = columns = required

      override def build(): Scan = ResultsScan(loaded, schema, columns)
    }
}

/**
 * The ranks that a DataFrame is written to. Spark asks for a table before it writes. This one
 * cannot be written, so Spark calls createRelation or createSink of [[SupplyDataSource]].
 */
private[datasource] final class RanksTable(override val schema: StructType) extends Table {
  override def name(): String = "supply"

  override def capabilities(): JavaSet[TableCapability] = Collections.emptySet()
}
