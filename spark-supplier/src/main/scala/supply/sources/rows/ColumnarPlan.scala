package supply.sources.rows

import scala.annotation.tailrec

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.{ColumnarToRowExec, InputAdapter, SQLExecutionRDD, SparkPlan, WholeStageCodegenExec}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.vectorized.ColumnarBatch

/** What Spark computes as batches of columns, and would only make rows of in the end. */
private[rows] object ColumnarPlan {
  /** None: Spark computes rows. Computes the stages in front of a shuffle. */
  def batches(data: DataFrame): Option[RDD[ColumnarBatch]] = {
    val query = data.queryExecution
    columnar(query.executedPlan).map { plan =>
      // It makes the session's settings known to the tasks, and only passes on what it gets.
      val passedOn = plan.executeColumnar().asInstanceOf[RDD[InternalRow]]
      new SQLExecutionRDD(passedOn, query.sparkSession.sessionState.conf)
        .asInstanceOf[RDD[ColumnarBatch]]
    }
  }

  @tailrec private def columnar(plan: SparkPlan): Option[SparkPlan] = plan match {
    case adaptive: AdaptiveSparkPlanExec => columnar(adaptive.finalPhysicalPlan)
    case stage: QueryStageExec => columnar(stage.plan)
    case WholeStageCodegenExec(inside) => columnar(inside)
    case ColumnarToRowExec(InputAdapter(columns)) => Some(columns)
    case ColumnarToRowExec(columns) => Some(columns)
    // Spark's cache gives rows or columns.
    case both if both.supportsColumnar => Some(both)
    case _ => None
  }
}
