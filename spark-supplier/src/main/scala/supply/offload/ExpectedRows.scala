package supply.offload

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan, Project, Range}
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.types.ArrayType

import supply.sources.rows.ListLengths

/** What Spark knows of a matrix before it computes the rows, so that ranks can ask for memory. */
private[offload] object ExpectedRows {
  private val bytesOfNumber = 8L
  private val smallBytes = 1L << 30

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

  /**
   * What a rank keeps of each row, by the first one; 0: unknown. A small matrix is not worth the
   * job that looks: the ranks ask for memory while its rows come, too.
   */
  def bytesOfRow(data: DataFrame): Long =
    if (data.queryExecution.optimizedPlan.stats.sizeInBytes < smallBytes) 0
    else data.schema.head.dataType match {
      case _: ArrayType =>
        val length = new ListLengths().of(column = 0, data.queryExecution.toRdd)
        length.fold(0L)(_ + data.columns.length - 1L) * bytesOfNumber
      case _ => 0
    }
}
