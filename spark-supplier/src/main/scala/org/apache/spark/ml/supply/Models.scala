package org.apache.spark.ml.supply

import org.apache.spark.ml.clustering.KMeansModel
import org.apache.spark.ml.feature.PCAModel
import org.apache.spark.ml.linalg.{DenseMatrix, DenseVector, Vector}
import org.apache.spark.ml.regression.LinearRegressionModel
import org.apache.spark.mllib.clustering.{KMeansModel => KMeansCenters}
import org.apache.spark.mllib.linalg.Vectors

/** MLlib's own models of what ranks have computed. They are saved and loaded without this product. */
object Models {
  /** explained: the share of each component in the variance. */
  def pca(uid: String, components: DenseMatrix, explained: DenseVector): PCAModel =
    new PCAModel(uid, components, explained)

  def kMeans(uid: String, centers: Iterator[Vector]): KMeansModel =
    new KMeansModel(uid, new KMeansCenters(centers.map(Vectors.fromML).toArray))

  def linearRegression(
      uid: String, coefficients: Vector, intercept: Double): LinearRegressionModel =
    new LinearRegressionModel(uid, coefficients, intercept)
}

/**
 * Multiplies vectors by a matrix, and so is a PCAModel for Spark: clients of Spark Connect may ask a model
 * of a class of Spark's own for its values, and no other. `transform` does not subtract the mean.
 */
abstract class Projection(uid: String, columns: DenseMatrix, values: DenseVector)
    extends PCAModel(uid, columns, values)
