package supply.linalg

import org.apache.spark.ml.Estimator
import org.apache.spark.ml.linalg.{DenseVector, SQLDataTypes}
import org.apache.spark.ml.param.ParamMap
import org.apache.spark.ml.util.{DefaultParamsReadable, Identifiable}
import org.apache.spark.sql.Dataset
import org.apache.spark.sql.types.StructType

import supply.offload.{MatrixRows, Ranks}

/**
 * The largest singular values of a column of vectors, and their right vectors, by the routine
 * `truncated_svd`. As RowMatrix.computeSVD of MLlib, which has no estimator for it.
 */
final class TruncatedSVD(override val uid: String)
    extends Estimator[TruncatedSVDModel] with HasK with VectorColumns with HasSparse with OnRanks {
  def this(ranks: Ranks) = {
    this(Identifiable.randomUID("truncatedSVD"))
    setRanks(ranks)
  }

  def setInputCol(value: String): this.type = set(inputCol, value)

  def setOutputCol(value: String): this.type = set(outputCol, value)

  def setK(value: Int): this.type = set(k, value)

  def setSparse(value: Boolean): this.type = set(sparse, value)

  override def fit(dataset: Dataset[_]): TruncatedSVDModel = {
    transformSchema(dataset.schema, logging = true)
    val rows = MatrixRows(Seq($(inputCol)), sparse = $(sparse))
    withMatrix(dataset, rows) { matrix =>
      val fitted =
        arrays("truncated_svd", Seq(matrix), "k" -> $(k))("S", "V")
      val model = new TruncatedSVDModel(uid, fitted("V"), new DenseVector(fitted("S").values))
      copyValues(model.setParent(this))
    }
  }

  override def transformSchema(schema: StructType): StructType =
    appended(schema, SQLDataTypes.VectorType)

  override def copy(extra: ParamMap): TruncatedSVD =
    copyValues(new TruncatedSVD(uid).setRanks(ranks), extra)
}

object TruncatedSVD extends DefaultParamsReadable[TruncatedSVD]
