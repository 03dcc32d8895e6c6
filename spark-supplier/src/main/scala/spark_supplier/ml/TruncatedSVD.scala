package spark_supplier.ml

import org.apache.spark.ml.feature.PCAModel
import org.apache.spark.ml.linalg.{DenseMatrix, DenseVector, SQLDataTypes}
import org.apache.spark.ml.param.ParamMap
import org.apache.spark.ml.supply.{Models, Projection}
import org.apache.spark.ml.util.{DefaultParamsReadable, DefaultParamsWritable, Identifiable, MLReader, MLWriter}
import org.apache.spark.ml.Estimator
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.Dataset

import supply.linalg._

/**
 * The largest singular values of a column of vectors, and their right vectors, by the routine
 * `truncated_svd`. As RowMatrix.computeSVD of MLlib, which has no estimator for it.
 */
final class TruncatedSVD(override val uid: String)
    extends Estimator[PCAModel] with Decomposition {
  /** For Spark Connect, which looks for a constructor without arguments. */
  private[ml] def this() = this(Identifiable.randomUID("truncatedSVD"))

  def this(ranks: Ranks) = {
    this(Identifiable.randomUID("truncatedSVD"))
    setRanks(ranks)
  }

  override def fit(dataset: Dataset[_]): TruncatedSVDModel = decomposed(dataset) { matrix =>
    val fitted = arrays("truncated_svd", Seq(matrix), "k" -> $(k))("S", "V")
    val model = new TruncatedSVDModel(uid, fitted("V"), new DenseVector(fitted("S").values))
    model.setParent(this)
    copyValues(model)
  }

  override def copy(extra: ParamMap): TruncatedSVD =
    copyValues(new TruncatedSVD(uid).setRanks(ranks), extra)
}

object TruncatedSVD extends DefaultParamsReadable[TruncatedSVD]

/**
 * What [[TruncatedSVD]] has fitted. Needs no ranks. `transform` multiplies each vector by V: the rows of
 * U S.
 *
 * components: V, a column for each singular value, whose largest value is positive. singularValues:
 * descending.
 */
final class TruncatedSVDModel(uid: String, val components: DenseMatrix,
    val singularValues: DenseVector) extends Projection(uid, components, singularValues)
    with VectorColumns with DefaultParamsWritable {
  /** For Spark, which reads params alone. */
  def this(uid: String) =
    this(uid, new DenseMatrix(0, 0, Array.empty), new DenseVector(Array.empty))

  /** For Spark Connect, which looks for a constructor without arguments. */
  private[ml] def this() = this(Identifiable.randomUID("truncatedSVD"))

  override def transformSchema(schema: StructType): StructType =
    appended(schema, SQLDataTypes.VectorType)

  override def copy(extra: ParamMap): TruncatedSVDModel = {
    val copied = new TruncatedSVDModel(uid, components, singularValues)
    copied.setParent(parent)
    copyValues(copied, extra)
  }

  override def toString: String = s"TruncatedSVDModel: uid=$uid, k=${components.numCols}"

  override def write: MLWriter = new TruncatedSVDModel.Writer(this, super.write)
}

object TruncatedSVDModel extends DefaultParamsReadable[TruncatedSVDModel] {
  override def read: MLReader[TruncatedSVDModel] = new Reader(super.read)

  private def values(path: String): String = s"$path/values"

  /** Values as Spark saves its own: Spark Connect keeps models in files of the server, too. */
  private final class Writer(model: TruncatedSVDModel, params: MLWriter) extends MLWriter {
    override protected def saveImpl(path: String): Unit = {
      params.session(sparkSession).save(path)
      Models.pca(model.uid, model.components, model.singularValues).write.session(sparkSession)
        .save(values(path))
    }
  }

  private final class Reader(params: MLReader[TruncatedSVDModel])
      extends MLReader[TruncatedSVDModel] {
    override def load(path: String): TruncatedSVDModel = {
      val saved = params.session(sparkSession).load(path)
      val read = PCAModel.read.session(sparkSession).load(values(path))
      saved.copyValues(new TruncatedSVDModel(saved.uid, read.pc, read.explainedVariance))
    }
  }
}
