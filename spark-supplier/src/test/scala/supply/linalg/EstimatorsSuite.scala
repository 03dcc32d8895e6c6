package supply.linalg

import java.nio.file.Files

import org.apache.spark.ml.{Estimator, Pipeline, PipelineStage}
import org.apache.spark.ml.linalg.{SQLDataTypes, Vector}
import org.apache.spark.ml.param.ParamMap
import org.apache.spark.sql.{DataFrame}
import org.apache.spark.sql.functions.{col, rand}
import org.apache.spark.sql.types.{DoubleType, StructType}
import org.scalatest.funsuite.AnyFunSuite

import spark_supplier.ml._
import supply.core.ConfigException
import supply.task.SupplySettings
import supply.testing.{LocalSession, TemporaryFolder}

/** Params of the estimators. Their fits are tested with ranks, from PySpark. */
class EstimatorsSuite extends AnyFunSuite with LocalSession {
  // Estimators ask nothing of ranks before a fit.
  private lazy val ranks = TemporaryFolder { folder =>
    val files = Seq("mapped-files" -> s"$folder/mapped", "named-pipes" -> s"$folder/a $folder/b")
      .map { case (name, line) => Files.write(folder.resolve(name), line.getBytes).toString }
    new Ranks(spark,
      SupplySettings(1, files.head, files.last), "results")
  }
  private lazy val pca = new PCA(ranks).setInputCol("features").setOutputCol("reduced").setK(3)
  private lazy val svd =
    new TruncatedSVD(ranks).setInputCol("features").setOutputCol("reduced").setK(3)
  private lazy val squares = new LinearLeastSquares(ranks)
  private lazy val kmeans = new KMeans(ranks)
  private lazy val estimators: Seq[Estimator[_]] = Seq(pca, svd, squares, kmeans)

  private val schema = new StructType().add("features", SQLDataTypes.VectorType)
    .add("label", DoubleType)

  test("each param has a text, and defaults are those of MLlib") {
    estimators.foreach { estimator =>
      val explained = estimator.explainParams()
      assert(estimator.params.forall(param =>
          param.doc.nonEmpty &&
            explained.contains(s"${param.name}: ${param.doc}")))
    }
    assert(kmeans.getK == 2 && kmeans.getMaxIter == 20 && kmeans.getTol == 1e-4)
    assert(squares.getRegParam == 0 && squares.getFitIntercept && squares.getLabelCol == "label")
    assert(!pca.getSparse && pca.getK == 3)
    assert(intercept[IllegalArgumentException](kmeans.setK(0)).getMessage.contains(
        "k given invalid value 0"))
  }

  test("a copy keeps the uid, and has extra params") {
    estimators.foreach { estimator =>
      val copy = estimator.copy(ParamMap.empty)
      assert(copy.uid == estimator.uid && copy.getClass == estimator.getClass)
    }
    val extra = ParamMap.empty.put(pca.k, 7).put(pca.sparse, true)
    val copy = pca.copy(extra)
    assert(copy.getK == 7 && copy.getSparse && copy.getInputCol == "features" && pca.getK == 3)
  }

  test("a pipeline is saved without its ranks, and a fit asks for them") {
    TemporaryFolder { folder =>
      val path = s"$folder/saved"
      new Pipeline().setStages(estimators.toArray[PipelineStage]).save(path)
      val loaded = Pipeline.load(path).getStages
      loaded.zip(estimators).foreach { case (found, estimator) =>
        assert(found.uid == estimator.uid && found.explainParams() == estimator.explainParams())
      }
      val vectors = spark.createDataFrame(Seq.empty[(Int, Vector)]).toDF("id", "features")
      assert(intercept[ConfigException](loaded.head.asInstanceOf[PCA].fit(vectors)).getMessage ==
        s"${pca.uid} has no ranks, which are not saved with it: call setRanks(ranks)")
    }
  }

  test("data under Spark ML's cast of the label are known as cached, unless they change") {
    val data = spark.range(3).selectExpr("id", "int(id) as label")
    val label = col("label").cast(DoubleType)
    def isCached(used: DataFrame) =
      LinearLeastSquares.isCached(used.queryExecution.optimizedPlan)
    assert(!isCached(data.withColumn("label", label)))
    data.cache()
    assert(isCached(data) && isCached(data.withColumn("label", label).select("id", "label")))
    assert(!isCached(data.withColumn("label", rand())))
    assert(!isCached(data.repartition(2)))
    data.unpersist(blocking = true)
  }

  test("schemas are those of the models") {
    def names(stage: PipelineStage) = stage.transformSchema(schema).fieldNames.toSeq
    assert(names(pca) == Seq("features", "label", "reduced"))
    assert(names(svd) == Seq("features", "label", "reduced"))
    assert(names(squares) == Seq("features", "label", "prediction"))
    assert(names(kmeans) == Seq("features", "label", "prediction"))
  }

  test("columns that do not fit are refused as MLlib does") {
    def refusal(stage: PipelineStage) =
      intercept[IllegalArgumentException](stage.transformSchema(schema)).getMessage
    assert(refusal(new PCA(ranks).setInputCol("label").setOutputCol("x")).contains(
        "Column label must be of vectors, and is double."))
    assert(refusal(new TruncatedSVD(ranks).setInputCol("none").setOutputCol("x")).contains("none"))
    assert(refusal(new KMeans(ranks).setPredictionCol("label")).contains(
        "Column label already exists."))
    assert(refusal(new LinearLeastSquares(ranks).setFeaturesCol("label")).contains("label"))
  }
}
