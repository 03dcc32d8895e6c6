package supply.linalg

import org.apache.spark.ml.{Pipeline, PipelineModel}
import org.apache.spark.ml.feature.VectorAssembler
import org.apache.spark.ml.linalg.{DenseMatrix, DenseVector, Vector}
import org.apache.spark.ml.param.ParamMap
import org.scalatest.funsuite.AnyFunSuite

import spark_supplier.ml._
import supply.testing.{LocalSession, TemporaryFolder}

/** A model after its ranks have ended. */
class TruncatedSVDModelSuite extends AnyFunSuite with LocalSession {
  private lazy val data = spark.range(3).selectExpr("double(id) as x", "1.0D as y", "2.0D as z")
  private val assembler = new VectorAssembler().setInputCols(Array("x", "y", "z"))
    .setOutputCol("features")

  private def model = new TruncatedSVDModel("svd_1",
    new DenseMatrix(3, 2, Array(1.0, 10.0, 0.0, 0.0, 2.0, 20.0), isTransposed = true),
    new DenseVector(Array(5.0, 4.0))).setInputCol("features").setOutputCol("reduced")

  private def reduced(model: PipelineModel): Seq[Vector] =
    model.transform(data).select("reduced").collect().map(_.getAs[Vector](0)).toSeq

  private val expected = (0 to 2).map(i => new DenseVector(Array(i + 4.0, 10.0 * i + 40.0)))

  test("transform multiplies by V, as a stage of a pipeline, also when it was saved") {
    val fitted = new Pipeline().setStages(Array(assembler, model)).fit(data)
    assert(reduced(fitted) == expected)
    TemporaryFolder { folder =>
      fitted.write.overwrite().save(s"$folder/saved")
      fitted.write.overwrite().save(s"$folder/saved")
      val loaded = PipelineModel.load(s"$folder/saved")
      assert(reduced(loaded) == expected)
      val stage = loaded.stages(1).asInstanceOf[TruncatedSVDModel]
      assert(stage.uid == "svd_1" && stage.singularValues == new DenseVector(Array(5.0, 4.0)))
    }
  }

  test("a copy has other params and the same values") {
    val copy = model.copy(ParamMap.empty.put(model.outputCol, "other"))
    assert(copy.getOutputCol == "other" && copy.components == model.components)
  }

  test("columns that do not fit are refused as MLlib does") {
    assert(
      intercept[IllegalArgumentException](model.transform(data)).getMessage.contains("features"))
    assert(intercept[IllegalArgumentException](model.setInputCol("x").transform(data)).getMessage
        .contains("Column x must be of vectors, and is double."))
    assert(intercept[IllegalArgumentException](
        model.setOutputCol("x").transform(assembler.transform(data))).getMessage
        .contains("Output column x already exists."))
  }
}
