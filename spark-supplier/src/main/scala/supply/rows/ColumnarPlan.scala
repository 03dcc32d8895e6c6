package supply.rows

import scala.annotation.tailrec

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, TableCacheQueryStageExec}
import org.apache.spark.sql.execution.columnar.{DefaultCachedBatchSerializer, InMemoryTableScanExec}
import org.apache.spark.sql.execution.{ColumnarToRowTransition, InputAdapter, SQLExecutionRDD, SparkPlan, WholeStageCodegenExec}
import org.apache.spark.sql.vectorized.ColumnarBatch

/** `areOurs`: nobody uses a batch again, and nobody frees it before the end of the partition. */
private[rows] final case class ColumnBatches(rdd: RDD[ColumnarBatch], areOurs: Boolean)

/** What Spark, or an engine in it, computes as batches of columns, and would only make rows of. */
private[rows] object ColumnarPlan {
  /** None: Spark computes rows. Computes the stages in front of a shuffle. */
  def batches(data: DataFrame): Option[ColumnBatches] = {
    val query = data.queryExecution
    columns(query.executedPlan).map { plan =>
      // SQLExecutionRDD makes the session's settings known to the tasks. It passes on what it gets.
      val passedOn = plan.executeColumnar().asInstanceOf[RDD[InternalRow]]
      val rdd = new SQLExecutionRDD(passedOn, query.sparkSession.sessionState.conf)
        .asInstanceOf[RDD[ColumnarBatch]]
      ColumnBatches(rdd, isCache(plan))
    }
  }

  /** The plan whose batches they are; None: rows. */
  @tailrec private[rows] def columns(plan: SparkPlan): Option[SparkPlan] = plan match {
    case adaptive: AdaptiveSparkPlanExec => columns(adaptive.finalPhysicalPlan)
    case WholeStageCodegenExec(inside) => columns(inside)
    case InputAdapter(inside) => columns(inside)
    case toRows: ColumnarToRowTransition => inHostMemory(toRows, toRows.child)
    // Spark's cache makes either.
    case either if either.supportsColumnar => inHostMemory(either)
    case _ => None
  }

  /** The last of these. None: its batches are in memory that only its own engine can read. */
  private def inHostMemory(plans: SparkPlan*): Option[SparkPlan] =
    if (plans.map(within).exists(isForeign)) None else Some(plans.last)

  @tailrec private def within(plan: SparkPlan): SparkPlan = plan match {
    case InputAdapter(inside) => within(inside)
    case other => other
  }

  /**
   * Batches of Spark's own operators, and of Comet's, can be read. NVIDIA's RAPIDS has batches on GPUs, Apache
   * Gluten hands on handles of native ones: operators of such engines have a type of the engine's.
   */
  private val Known = Seq("org.apache.spark.", "org.apache.comet.", "java.", "scala.")

  private def isForeign(plan: SparkPlan): Boolean = {
    def types(of: Class[_]): Seq[Class[_]] =
      if (of == null) Nil
      else of +: (of.getInterfaces.toSeq ++ Option(of.getSuperclass)).flatMap(types)
    types(plan.getClass).exists(one => !Known.exists(one.getName.startsWith))
  }

  @tailrec private def isCache(plan: SparkPlan): Boolean = plan match {
    case InputAdapter(inside) => isCache(inside)
    case stage: TableCacheQueryStageExec => isCache(stage.plan)
    case scan: InMemoryTableScanExec =>
      scan.relation.cacheBuilder.serializer.isInstanceOf[DefaultCachedBatchSerializer]
    case _ => false
  }
}
