package supply.linalg

import org.apache.spark.ml.linalg.{DenseMatrix, DenseVector, SQLDataTypes, Vector}
import org.apache.spark.ml.param.ParamMap
import org.apache.spark.ml.util.{DefaultParamsReadable, DefaultParamsWritable, Identifiable, MLReader, MLWriter}
import org.apache.spark.ml.{Estimator, Model}
import org.apache.spark.sql.functions.{col, udf}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Dataset}

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

/**
 * What [[TruncatedSVD]] has fitted. Needs no ranks. `transform` multiplies each vector by V: the rows of
 * U S.
 *
 * components: V, a column for each singular value, whose largest value is positive. singularValues:
 * descending.
 */
final class TruncatedSVDModel private[linalg] (override val uid: String,
    val components: DenseMatrix, val singularValues: DenseVector) extends Model[TruncatedSVDModel]
    with HasK with VectorColumns with DefaultParamsWritable {
  /** For Spark, which reads params alone. */
  private[linalg] def this(uid: String) =
    this(uid, new DenseMatrix(0, 0, Array.empty), new DenseVector(Array.empty))

  def setInputCol(value: String): this.type = set(inputCol, value)

  def setOutputCol(value: String): this.type = set(outputCol, value)

  override def transform(dataset: Dataset[_]): DataFrame = {
    transformSchema(dataset.schema, logging = true)
    val transposed = components.transpose
    val multiplied = udf((vector: Vector) => transposed.multiply(vector): Vector)
    dataset.withColumn($(outputCol), multiplied(col($(inputCol))))
  }

  override def transformSchema(schema: StructType): StructType =
    appended(schema, SQLDataTypes.VectorType)

  override def copy(extra: ParamMap): TruncatedSVDModel =
    copyValues(new TruncatedSVDModel(uid, components, singularValues), extra).setParent(parent)

  override def write: MLWriter = new TruncatedSVDModel.Writer(this, super.write)
}

object TruncatedSVDModel extends DefaultParamsReadable[TruncatedSVDModel] {
  override def read: MLReader[TruncatedSVDModel] = new Reader(super.read)

  private def data(path: String): String = s"$path/data"

  private final class Writer(model: TruncatedSVDModel, params: MLWriter) extends MLWriter {
    override protected def saveImpl(path: String): Unit = {
      params.session(sparkSession).save(path)
      sparkSession.createDataFrame(Seq((model.components, model.singularValues)))
        .toDF("components", "singularValues").coalesce(1).write.parquet(data(path))
    }
  }

  private final class Reader(params: MLReader[TruncatedSVDModel])
      extends MLReader[TruncatedSVDModel] {
    override def load(path: String): TruncatedSVDModel = {
      val saved = params.session(sparkSession).load(path)
      val row = sparkSession.read.parquet(data(path)).select("components", "singularValues").head()
      saved.copyValues(new TruncatedSVDModel(
          saved.uid, row.getAs[DenseMatrix](0), row.getAs[DenseVector](1)))
    }
  }
}
