package supply.testing

import org.apache.spark.ml.feature.PCAModel
import org.apache.spark.mllib.linalg.distributed.{BlockMatrix, IndexedRowMatrix}
import org.apache.spark.sql.DataFrame
import spark_supplier.ml.PCA
import supply.linalg._

object OnRanks {
  def pca(ranks: Ranks, vectors: DataFrame): PCAModel =
    new PCA(ranks).setK(2).setInputCol("vector").setOutputCol("components").fit(vectors)

  def gram(ranks: Ranks, rows: IndexedRowMatrix): BlockMatrix = {
    val matrix = ranks.matrix(rows)
    val results = ranks.call("libsupply_linalg.so", "gram", Seq(matrix), Map.empty)
    results.head._2.toBlockMatrix()
  }
}
