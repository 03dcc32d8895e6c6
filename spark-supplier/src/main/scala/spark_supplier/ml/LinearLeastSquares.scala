package spark_supplier.ml

import scala.annotation.tailrec

import org.apache.spark.ml.linalg.{Vector, Vectors}
import org.apache.spark.ml.param.ParamMap
import org.apache.spark.ml.param.shared.{HasFitIntercept, HasRegParam}
import org.apache.spark.ml.regression.LinearRegressionModel
import org.apache.spark.ml.supply.Models
import org.apache.spark.ml.util.{DefaultParamsReadable, Identifiable}
import org.apache.spark.ml.Predictor
import org.apache.spark.sql.{DataFrame, Dataset}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.functions.{avg, col, count, lit, stddev_pop}
import org.apache.spark.sql.types.DoubleType
import org.apache.spark.storage.StorageLevel

import supply.linalg._

/**
 * Linear least squares, with `regParam` ridge regression, by the routine `ridge`. As
 * org.apache.spark.ml.regression.LinearRegression without standardization, and the model is MLlib's own.
 * Data that are not cached are cached for the fit.
 */
final class LinearLeastSquares(override val uid: String)
    extends Predictor[Vector, LinearLeastSquares, LinearRegressionModel] with HasRegParam
    with HasFitIntercept with HasSparse with OnRanks {
  /** For Spark Connect, which looks for a constructor without arguments. */
  private[ml] def this() = this(Identifiable.randomUID("linearLeastSquares"))

  def this(ranks: Ranks) = {
    this(Identifiable.randomUID("linearLeastSquares"))
    setRanks(ranks)
  }

  setDefault(regParam -> 0.0)

  /** As MLlib's: of a mean loss, whose labels are divided by their standard deviation. */
  def setRegParam(value: Double): this.type = set(regParam, value)

  def setFitIntercept(value: Boolean): this.type = set(fitIntercept, value)

  /** Sparse data take conjugate gradients instead of the normal equations. */
  def setSparse(value: Boolean): this.type = set(sparse, value)

  override def fit(dataset: Dataset[_]): LinearRegressionModel = onRanks(super.fit(dataset))

  override protected def train(dataset: Dataset[_]): LinearRegressionModel =
    kept(dataset) { data =>
      withMatrix(data, MatrixRows(Seq($(featuresCol)), sparse = $(sparse))) { A =>
        withMatrix(data, MatrixRows(Seq($(labelCol)))) { b =>
          val intercept = if ($(fitIntercept)) 1 else 0
          val fitted = arrays("ridge", Seq(A, b),
            "l2" -> l2(data), "intercept" -> intercept)("coefficients", "intercept")
          Models.linearRegression(
            uid, Vectors.dense(fitted("coefficients").values), fitted("intercept").values.head)
        }
      }
    }

  /** Both columns are sent, and must have the same rows each time. */
  private def kept[A](dataset: Dataset[_])(body: DataFrame => A): A = {
    val data =
      dataset.select(col($(featuresCol)), col($(labelCol)).cast(DoubleType).as($(labelCol)))
    if (LinearLeastSquares.isCached(data.queryExecution.optimizedPlan)) body(data)
    else {
      data.persist(StorageLevel.MEMORY_AND_DISK)
      try body(data)
      finally data.unpersist()
    }
  }

  /** The weight of the routine, whose loss is a sum, of labels as they are. */
  private def l2(data: DataFrame): Double =
    if ($(regParam) == 0) 0
    else {
      val label = col($(labelCol))
      val row = data.agg(count(lit(1)), avg(label), stddev_pop(label)).head()
      val (rows, mean, deviation) = (row.getLong(0), row.getDouble(1), row.getDouble(2))
      require(deviation > 0 || $(fitIntercept) || mean == 0,
        s"All labels are $mean, so their standard deviation is 0: set regParam to 0, or fit an intercept.")
      $(regParam) * rows / (if (deviation > 0) deviation else 1)
    }

  override def copy(extra: ParamMap): LinearLeastSquares =
    copyValues(new LinearLeastSquares(uid).setRanks(ranks), extra)
}

object LinearLeastSquares extends DefaultParamsReadable[LinearLeastSquares] {
  /** Dataset.storageLevel does not tell it: Spark ML has cast the label on top of what is cached. */
  @tailrec def isCached(plan: LogicalPlan): Boolean = plan match {
    case Project(columns, child) => columns.forall(_.deterministic) && isCached(child)
    case _: InMemoryRelation => true
    case _ => false
  }
}
