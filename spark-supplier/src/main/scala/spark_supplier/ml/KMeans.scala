package spark_supplier.ml

import org.apache.spark.ml.Estimator
import org.apache.spark.ml.clustering.KMeansModel
import org.apache.spark.ml.param.ParamMap
import org.apache.spark.ml.param.shared.{HasFeaturesCol, HasMaxIter, HasPredictionCol, HasSeed, HasTol}
import org.apache.spark.ml.supply.Models
import org.apache.spark.ml.util.{DefaultParamsReadable, Identifiable}
import org.apache.spark.sql.Dataset
import org.apache.spark.sql.types.{IntegerType, StructType}

import supply.linalg._

/**
 * k-means clusters of a column of vectors, by the routine `kmeans`. As
 * org.apache.spark.ml.clustering.KMeans, and the model is MLlib's own, without a summary. The first
 * centers are other ones than MLlib's for the same seed.
 */
final class KMeans(override val uid: String) extends Estimator[KMeansModel] with HasK
    with HasFeaturesCol with HasPredictionCol with HasMaxIter with HasTol with HasSeed
    with OnRanks {
  /** For Spark Connect, which looks for a constructor without arguments. */
  private[ml] def this() = this(Identifiable.randomUID("kmeans"))

  def this(ranks: Ranks) = {
    this(Identifiable.randomUID("kmeans"))
    setRanks(ranks)
  }

  setDefault(k -> 2, maxIter -> 20, tol -> 1e-4)

  def setFeaturesCol(value: String): this.type = set(featuresCol, value)

  def setPredictionCol(value: String): this.type = set(predictionCol, value)

  def setK(value: Int): this.type = set(k, value)

  def setMaxIter(value: Int): this.type = set(maxIter, value)

  def setTol(value: Double): this.type = set(tol, value)

  def setSeed(value: Long): this.type = set(seed, value)

  override def fit(dataset: Dataset[_]): KMeansModel = onRanks {
    transformSchema(dataset.schema, logging = true)
    withMatrix(dataset, MatrixRows(Seq($(featuresCol)))) { matrix =>
      val fitted = arrays("kmeans", Seq(matrix), "k" -> $(k),
        "iterations" -> $(maxIter), "tolerance" -> $(tol), "seed" -> $(seed))("centers")
      copyValues(Models.kMeans(uid, fitted("centers").rowIter).setParent(this))
    }
  }

  override def transformSchema(schema: StructType): StructType = {
    VectorColumns.requireVectors(schema, $(featuresCol))
    require(!schema.fieldNames.contains($(predictionCol)),
      s"Column ${$(predictionCol)} already exists.")
    schema.add($(predictionCol), IntegerType, nullable = false)
  }

  override def copy(extra: ParamMap): KMeans = copyValues(new KMeans(uid).setRanks(ranks), extra)
}

object KMeans extends DefaultParamsReadable[KMeans]
