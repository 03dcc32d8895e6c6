package supply.offload

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan, Project, Range}
import org.apache.spark.sql.execution.columnar.InMemoryRelation

import supply.protocol.Schema

/** What Spark knows of a matrix before it computes the rows, so that ranks can ask for memory. */
private[offload] object ExpectedRows {
  private val bytesOfNumber = 8L

  /** The number of rows; 0: unknown. Known of a DataFrame that is cached and computed. */
  def count(data: DataFrame): Long = count(data.queryExecution.optimizedPlan)

  // Estimates of other plans may be too large, and would refuse a matrix that fits.
  private def count(plan: LogicalPlan): Long = plan match {
    case Project(_, child) => count(child)
    case cached: InMemoryRelation if !cached.cacheBuilder.isCachedColumnBuffersLoaded => 0
    case _: InMemoryRelation | _: Range | _: LocalRelation =>
      plan.stats.rowCount.filter(_.isValidLong).fold(0L)(_.toLong)
    case _ => 0
  }

  /** What a rank keeps of each row; 0: unknown. All numbers become doubles. */
  def bytesOfRow(schema: Schema): Long =
    schema.columns.find(_.name == "row").fold(0L) { row =>
      val numbers = row.format.stripPrefix("+w:").toLong + schema.columns.count(_.name == "key")
      numbers * bytesOfNumber
    }
}
