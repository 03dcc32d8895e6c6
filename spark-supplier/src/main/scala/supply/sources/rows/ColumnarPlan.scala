package supply.sources.rows

import scala.annotation.tailrec

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.{ColumnarToRowExec, DataSourceScanExec, InputAdapter, SQLExecutionRDD, SparkPlan, WholeStageCodegenExec}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * What Spark reads as batches of columns, and would only make rows of in the end. Its cache is read
 * as rows: Spark keeps each batch of the cache until the partition's context ends.
 */
private[rows] object ColumnarPlan {
  /** None: Spark computes rows. Computes the stages in front of a shuffle. */
  def batches(data: DataFrame): Option[RDD[ColumnarBatch]] = {
    val query = data.queryExecution
    scan(query.executedPlan).map { plan =>
      // SQLExecutionRDD makes the session's settings known to the tasks. It passes on what it gets.
      val passedOn = plan.executeColumnar().asInstanceOf[RDD[InternalRow]]
      new SQLExecutionRDD(passedOn, query.sparkSession.sessionState.conf)
        .asInstanceOf[RDD[ColumnarBatch]]
    }
  }

  @tailrec private def scan(plan: SparkPlan): Option[SparkPlan] = plan match {
    case adaptive: AdaptiveSparkPlanExec => scan(adaptive.finalPhysicalPlan)
    case WholeStageCodegenExec(inside) => scan(inside)
    case ColumnarToRowExec(InputAdapter(columns)) => Some(columns).filter(isScan)
    case ColumnarToRowExec(columns) => Some(columns).filter(isScan)
    case _ => None
  }

  private def isScan(plan: SparkPlan): Boolean = plan match {
    case _: DataSourceScanExec | _: DataSourceV2ScanExecBase => true
    case _ => false
  }
}
