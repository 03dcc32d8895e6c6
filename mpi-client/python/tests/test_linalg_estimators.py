"""Estimators of spark_supplier.ml with real ranks, against those of MLlib on the same data."""

import os
import re
import subprocess
import sys
from typing import Any

import numpy
import pytest
from pyspark.ml import Pipeline, PipelineModel, clustering, feature, regression
from pyspark.ml.clustering import KMeansModel
from pyspark.ml.evaluation import RegressionEvaluator
from pyspark.ml.linalg import Vectors
from pyspark.ml.regression import LinearRegression
from pyspark.ml.tuning import CrossValidator, CrossValidatorModel, ParamGridBuilder
from pyspark.sql.utils import IllegalArgumentException
from spark_supplier import RunError
from spark_supplier.ml import PCA, KMeans, LinearLeastSquares, TruncatedSVD
from spark_supplier.offload import MatrixRanks

from layout import ROOT
from rank_server import LINALG, SERVER, has_slepc, skip_without_linalg
from supplier_session import session_fixture, shared_memory

skip_without_linalg()
HAS_SLEPC = has_slepc()

spark = session_fixture(3)
ROWS, COLUMNS, CLUSTERS = 120, 5, 3


@pytest.fixture(scope="module")
def df(spark):
    """Three clusters that are far from each other, and a label that the features nearly explain."""
    random = numpy.random.default_rng(3)
    features = random.normal(size=(ROWS, COLUMNS)) * [3, 2, 1, 0.5, 0.2] + 40 * (numpy.arange(ROWS) % CLUSTERS)[:, None]
    labels = features @ [1, -2, 3, 0, 0.5] + 7 + random.normal(size=ROWS)
    rows = [(i, Vectors.dense(features[i]), float(labels[i])) for i in range(ROWS)]
    return spark.createDataFrame(rows, ["id", "features", "label"]).repartition(4).cache()


@pytest.fixture(scope="module")
def features(df):
    return numpy.array([row.features.toArray() for row in df.collect()])


@pytest.fixture(scope="module")
def ranks(spark):
    with (
        shared_memory() as folder,
        MatrixRanks(spark, 2, libraries=LINALG.parent, server=SERVER, folder=folder, timeout=60) as ranks,
    ):
        yield ranks


def close(found, expected, tolerance=1e-8):
    found, expected = numpy.asarray(found), numpy.asarray(expected)
    assert found.shape == expected.shape
    assert numpy.linalg.norm(found - expected) <= tolerance * numpy.linalg.norm(expected)


def column(df, name):
    return numpy.array([row[name].toArray() for row in df.orderBy("id").select(name).collect()])


SPARSE = pytest.param(True, marks=pytest.mark.skipif(not HAS_SLEPC, reason="sparse matrices need SLEPc"))


@pytest.mark.parametrize("sparse", [False, SPARSE])
def test_pca(df, ranks, sparse):
    expected = feature.PCA(k=3, inputCol="features", outputCol="pca").fit(df)
    model = PCA(ranks=ranks, k=3, inputCol="features", outputCol="pca", sparse=sparse).fit(df)
    assert isinstance(model, feature.PCAModel)
    signs = numpy.sign((expected.pc.toArray() * model.pc.toArray()).sum(0))
    close(model.pc.toArray() * signs, expected.pc.toArray())
    close(model.explainedVariance.toArray(), expected.explainedVariance.toArray())
    close(column(model.transform(df), "pca") * signs, column(expected.transform(df), "pca"))


@pytest.mark.parametrize("sparse", [False, SPARSE])
def test_truncated_svd(df, features, ranks, sparse):
    model = TruncatedSVD(ranks=ranks, sparse=sparse).setK(2).setInputCol("features").setOutputCol("reduced").fit(df)
    s, v = numpy.linalg.svd(features)[1:]
    v = v[:2].T * numpy.sign(v[:2].T[abs(v[:2].T).argmax(0), range(2)])
    close(model.singularValues.toArray(), s[:2])
    close(model.components.toArray(), v)
    close(column(model.transform(df), "reduced"), column(df, "features") @ v)
    assert model.getK() == 2


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_linear_least_squares(df, ranks, weight, intercept):
    options = {"regParam": weight, "fitIntercept": intercept}
    expected = regression.LinearRegression(standardization=False, solver="normal", **options).fit(df)
    model = LinearLeastSquares(ranks=ranks, **options).fit(df)
    assert isinstance(model, regression.LinearRegressionModel)
    close(model.coefficients.toArray(), expected.coefficients.toArray())
    close(model.intercept, expected.intercept)
    together = model.transform(df).join(expected.transform(df).selectExpr("id", "prediction as other"), "id")
    assert together.where("abs(prediction - other) > 1e-8 * (1 + abs(other))").count() == 0


def test_linear_least_squares_of_rows_whose_order_changes(spark, df, ranks):
    """Features and labels are sent one after the other, of data that nobody has cached."""
    shuffled = df.orderBy("features").select("*").withColumn("random", _rand()).repartition(3, "random")
    model = LinearLeastSquares(ranks=ranks).setFeaturesCol("features").setLabelCol("label").fit(shuffled)
    close(model.coefficients.toArray(), LinearLeastSquares(ranks=ranks).fit(df).coefficients.toArray())
    assert not shuffled.is_cached


def _rand():
    from pyspark.sql.functions import rand

    return rand()


def test_labels_that_are_all_the_same(df, ranks):
    same = df.selectExpr("id", "features", "5 as label").cache()
    model = LinearLeastSquares(ranks=ranks, regParam=0.2).fit(same)
    assert abs(model.coefficients.toArray()).max() < 1e-8
    assert abs(model.intercept - 5) < 1e-8
    without: dict[str, Any] = {"regParam": 0.2, "fitIntercept": False}
    for estimator in (
        LinearRegression(standardization=False, solver="normal", **without),
        LinearLeastSquares(ranks=ranks, **without),
    ):
        with pytest.raises(IllegalArgumentException, match="standard deviation"):
            estimator.fit(same)


def test_kmeans(df, ranks):
    def sorted_centers(model):
        return numpy.array(sorted(center.tolist() for center in model.clusterCenters()))

    expected = clustering.KMeans(k=CLUSTERS, seed=1).fit(df)
    model = KMeans(ranks=ranks, k=CLUSTERS).setSeed(5).setMaxIter(30).setTol(1e-6).fit(df)
    assert isinstance(model, clustering.KMeansModel)
    close(sorted_centers(model), sorted_centers(expected))
    found = model.transform(df).select("id", "prediction").collect()
    assert len({(row.id % CLUSTERS, row.prediction) for row in found}) == CLUSTERS
    assert model.predict(df.head().features) in range(CLUSTERS)


@pytest.mark.long
def test_a_pipeline_outlives_its_ranks_and_is_saved(spark, df, tmp_path):
    with (
        shared_memory() as folder,
        MatrixRanks(spark, 2, libraries=LINALG.parent, server=SERVER, folder=folder, timeout=60) as ranks,
    ):
        stages = [
            TruncatedSVD(ranks=ranks, k=4, inputCol="features", outputCol="svd"),
            PCA(ranks=ranks, k=2, inputCol="svd", outputCol="pca"),
            KMeans(ranks=ranks, k=CLUSTERS, featuresCol="pca", seed=1),
        ]
        Pipeline(stages=stages).save(str(tmp_path / "estimators"))
        pipeline = Pipeline.load(str(tmp_path / "estimators"))
        assert list(map(set_params, pipeline.getStages())) == list(map(set_params, stages))
        with pytest.raises(RunError, match="TruncatedSVD_.* has no ranks, which are not saved with it: call setRanks"):
            pipeline.fit(df)
        for stage in pipeline.getStages():
            stage.setRanks(ranks)
        model = pipeline.fit(df)
    model.write().overwrite().save(str(tmp_path / "saved"))
    loaded = PipelineModel.load(str(tmp_path / "saved"))
    assert type(loaded.stages[0]).__name__ == "TruncatedSVDModel" and isinstance(loaded.stages[2], KMeansModel)
    predictions = [row.prediction for row in model.transform(df).orderBy("id").collect()]
    assert predictions == [row.prediction for row in loaded.transform(df).orderBy("id").collect()]
    assert len(set(zip([i % CLUSTERS for i in range(ROWS)], predictions))) == CLUSTERS
    again = type(model.stages[0]).load(str(tmp_path / "saved" / "stages" / next(names(tmp_path))))
    assert again.singularValues == model.stages[0].singularValues


def set_params(stage):
    return stage.uid, {param.name: value for param, value in stage.extractParamMap().items() if stage.isSet(param)}


def names(folder):
    return (path.name for path in (folder / "saved" / "stages").iterdir() if path.name.startswith("0_"))


@pytest.mark.long
def test_a_grid_of_params(df, ranks, tmp_path):
    """With parallelism=2 two fits want the same ranks."""
    squares = LinearLeastSquares(ranks=ranks)
    grid = ParamGridBuilder().addGrid(squares.regParam, [0.0, 100.0]).build()
    CrossValidator(
        estimator=squares, estimatorParamMaps=grid, evaluator=RegressionEvaluator(), numFolds=2, seed=1, parallelism=2
    ).save(str(tmp_path / "validator"))
    validator = CrossValidator.load(str(tmp_path / "validator"))
    validator.getEstimator().setRanks(ranks)
    best = validator.fit(df)
    assert best.bestModel.getRegParam() == 0.0
    assert best.avgMetrics[0] < best.avgMetrics[1]
    best.save(str(tmp_path / "best"))
    assert CrossValidatorModel.load(str(tmp_path / "best")).bestModel.coefficients == best.bestModel.coefficients


def test_params_are_explained_and_errors_name_what_is_wrong(df, ranks):
    pca = PCA(ranks=ranks, inputCol="features", outputCol="x")
    assert pca.isSet(pca.inputCol) and not pca.isSet(pca.sparse) and pca.hasDefault(pca.sparse)
    kmeans = KMeans(ranks=ranks, k=2)
    names = ("k", "maxIter", "tol", "seed", "featuresCol")
    assert [kmeans.isSet(kmeans.getParam(name)) for name in names] == [True, False, False, False, False]
    for estimator, value in ((KMeans, 20), (LinearLeastSquares, True)):
        name = "maxIter" if estimator is KMeans else "fitIntercept"
        made = estimator(**{name: value})
        assert made.isSet(made.getParam(name)) and made.extractParamMap()[made.getParam(name)] == value
    assert kmeans.setParams(maxIter=7, seed=None) is kmeans and kmeans.getMaxIter() == 7
    assert kmeans.isSet(kmeans.seed) and kmeans.getSeed() is None
    with pytest.raises(RunError, match=r"seed is None, must be .*: clear\(seed\) gives the default back"):
        kmeans.fit(df)
    with pytest.raises(TypeError, match="KMeans has no param 'maxiter', but featuresCol, k, maxIter"):
        kmeans.setParams(maxiter=3)
    with pytest.raises(TypeError, match="keyword arguments"):
        KMeans(ranks)
    kmeans.clear(kmeans.maxIter)
    assert kmeans.getMaxIter() == 20 and kmeans.getFeaturesCol() == "features"
    assert "k: how many are computed (> 0) (undefined)" in pca.explainParams()
    with pytest.raises(RunError, match="k is 6: it must be from 1 to 5, the smaller side of A"):
        pca.setK(6).fit(df)
    with pytest.raises(IllegalArgumentException, match="Column label must be of vectors, and is double"):
        pca.setInputCol("label").fit(df)
    assert pca.copy({pca.k: 2}).getK() == 2 and pca.getK() == 6
    with pytest.raises(IllegalArgumentException, match="already exists"):
        KMeans(ranks=ranks, predictionCol="label").fit(df)


@pytest.mark.long
def test_the_examples_of_the_page(tmp_path):
    """Those that need no library of the reader."""
    found = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/OFFLOAD.md").read_text(), re.MULTILINE | re.DOTALL)
    needs_others = ("PCA(ranks=ranks", "mllib", "to_torch")
    code = [example for example in found if any(word in example for word in needs_others)]
    assert len(code) == 3
    environment = {
        **os.environ, "SUPPLY_SERVER": str(SERVER), "SUPPLY_LIBRARIES": str(LINALG.parent),
        "PYSPARK_PYTHON": sys.executable,
    }  # fmt: skip
    program = subprocess.run(
        [sys.executable, "-c", found[0] + "".join(code)], cwd=tmp_path, env=environment, capture_output=True,
        text=True, timeout=240,
    )  # fmt: skip
    assert program.returncode == 0, program.stdout + program.stderr
    assert "5000\n2\n" in program.stdout and "|prediction|" in program.stdout
