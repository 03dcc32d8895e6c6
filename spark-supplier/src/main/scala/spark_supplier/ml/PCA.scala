package spark_supplier.ml

import org.apache.spark.ml.{Estimator, PipelineStage}
import org.apache.spark.ml.feature.PCAModel
import org.apache.spark.ml.linalg.{DenseVector, SQLDataTypes}
import org.apache.spark.ml.param.ParamMap
import org.apache.spark.ml.supply.Models
import org.apache.spark.ml.util.{DefaultParamsReadable, Identifiable}
import org.apache.spark.sql.Dataset
import org.apache.spark.sql.types.StructType

import supply.linalg._

/**
 * The principal components of a column of vectors, by the routine `pca`. As
 * org.apache.spark.ml.feature.PCA, and the model is MLlib's own; a component's largest value is positive.
 * Data need two rows, or more.
 */
final class PCA(override val uid: String) extends Estimator[PCAModel] with Decomposition {
  /** For Spark Connect, which looks for a constructor without arguments. */
  private[ml] def this() = this(Identifiable.randomUID("pca"))

  def this(ranks: Ranks) = {
    this(Identifiable.randomUID("pca"))
    setRanks(ranks)
  }

  override def fit(dataset: Dataset[_]): PCAModel = decomposed(dataset) { matrix =>
    val fitted = arrays("pca", Seq(matrix), "k" -> $(k))("components", "variance")
    val ofColumns = arrays("column_statistics", Seq(matrix))("variance")
    val whole = ofColumns("variance").values.sum
    val explained = fitted("variance").values.map(part => if (whole > 0) part / whole else 0)
    copyValues(Models.pca(uid, fitted("components"), new DenseVector(explained)).setParent(this))
  }

  override def copy(extra: ParamMap): PCA = copyValues(new PCA(uid).setRanks(ranks), extra)
}

object PCA extends DefaultParamsReadable[PCA]

/** An estimator of `k` columns that a column of vectors becomes. */
private[ml] trait Decomposition extends PipelineStage with HasK with VectorColumns with HasSparse
    with OnRanks {
  def setInputCol(value: String): this.type = set(inputCol, value)

  def setOutputCol(value: String): this.type = set(outputCol, value)

  def setK(value: Int): this.type = set(k, value)

  def setSparse(value: Boolean): this.type = set(sparse, value)

  override def transformSchema(schema: StructType): StructType =
    appended(schema, SQLDataTypes.VectorType)

  protected def decomposed[A](dataset: Dataset[_])(body: Matrix => A): A = onRanks {
    transformSchema(dataset.schema, logging = true)
    withMatrix(dataset, MatrixRows(Seq($(inputCol)), sparse = $(sparse)))(body)
  }
}
