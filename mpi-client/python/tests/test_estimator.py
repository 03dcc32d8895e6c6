"""TorchEstimator and TorchModel, in pipelines of pyspark.ml."""

import importlib
import io
import math
import os
import subprocess
import sys
from functools import partial
from typing import Any

import numpy
import pytest
import torch
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.evaluation import BinaryClassificationEvaluator, MulticlassClassificationEvaluator, RegressionEvaluator
from pyspark.ml.feature import IndexToString, StringIndexer, VectorAssembler
from pyspark.ml.functions import array_to_vector
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder, TrainValidationSplit
from pyspark.sql import functions
from pyspark.sql.types import StructType
from spark_supplier import RunError, Supplier
from spark_supplier.ml import TorchEstimator, TorchModel
from spark_supplier.ml.features import Features, Label, Labels, weight_column
from spark_supplier.ml.torch_model import Held
from spark_supplier.ml.training import Training

from supplier_session import only_classic, session_fixture, shared_memory

RANKS, ROWS, EPOCHS = 2, 1000, 6


spark = session_fixture(2 * RANKS + 1)


@pytest.fixture(scope="module")
def supplier(spark):
    """With the same ranks in each test."""
    with shared_memory() as folder, Supplier(ranks=RANKS, folder=folder) as kept:
        yield kept


@pytest.fixture(scope="module")
def points(spark):
    df = spark.range(0, ROWS, 1, 3).selectExpr("id", "rand(1) as a", "rand(2) as b", "id % 5 = 0 as held_out")
    return df.selectExpr("*", "2 * a - b as y", "int(a > b) as kind")


def linear(features=2):
    return torch.nn.Linear(features, 1)


def adam(parameters):
    return torch.optim.Adam(parameters, 0.05)


def plane(ranks, **params):
    """Of the features a and b, and the label y. ranks: a number, or a Supplier."""
    return TorchEstimator(
        **{
            "model": linear, "loss": torch.nn.MSELoss(), "optimizer": adam, "labelCol": "y", "featuresCol": ["a", "b"],
            "batchSize": 16, "numRanks" if isinstance(ranks, int) else "supplier": ranks, **params,
        }
    )  # fmt: skip


def predictions(model, df):
    return [row.prediction for row in model.transform(df).orderBy("id").collect()]


def test_validation_rows_of_one_rank_alone(points, supplier, capfd):
    estimator = plane(
        supplier, model=lambda: Noisy(1, 1), featuresCol="a.x", labelCol="y.x", validationIndicatorCol="held.out"
    )
    df = points.selectExpr("a as `a.x`", "y as `y.x`", f"id >= {ROWS - 3} as `held.out`")
    assert estimator.fit(df).history[0]["validation_loss"] > 0
    printed = capfd.readouterr().out.splitlines()
    noise = [next(line for line in printed if line.startswith(f"[rank {rank}] noise")) for rank in range(RANKS)]
    assert len({line.partition("noise")[2] for line in noise}) == RANKS


class Noisy(torch.nn.Linear):
    """As one with dropout: each rank has other numbers."""

    def forward(self, features):
        print(f"noise {torch.rand(1).item()}")
        return super().forward(features)


def test_a_pipeline_learns_a_plane_predicts_and_is_saved(points, supplier, tmp_path):
    estimator = plane(supplier, featuresCol="features", validationIndicatorCol="held_out", epochs=EPOCHS, seed=1)
    assembler = VectorAssembler(inputCols=["a", "b"], outputCol="features")
    Pipeline(stages=[assembler, estimator]).write().overwrite().save(str(tmp_path / "unfitted"))
    loaded = Pipeline.load(str(tmp_path / "unfitted"))
    fitted = loaded.fit(points)
    history = fitted.stages[-1].history
    assert [set(losses) for losses in history] == [{"loss", "validation_loss"}] * EPOCHS
    assert history[-1]["loss"] < history[0]["loss"] / 100 and history[-1]["validation_loss"] < 0.001
    predicted = fitted.transform(points)
    assert predicted.schema["prediction"].dataType.simpleString() == "double"
    assert predicted.selectExpr("max(abs(prediction - y))").first()[0] < 0.1
    assert predicted.columns == [*points.columns, "features", "prediction"]

    fitted.save(str(tmp_path / "fitted"))
    again = PipelineModel.load(str(tmp_path / "fitted"))
    model = again.stages[-1]
    assert isinstance(model, TorchModel) and model.history == history and model.numFeatures == 2
    assert model.uid == estimator.uid and model.getBatchSize() == 16
    assert predictions(again, points) == predictions(fitted, points)
    other = model.copy({model.predictionCol: "other"})
    assert "other" in other.transform(again.stages[0].transform(points)).columns


def test_params_are_those_of_spark_ml(points, tmp_path):
    estimator = TorchEstimator().setModel(linear).setLoss(torch.nn.L1Loss()).setOptimizer(torch.optim.SGD)
    estimator.setFeaturesCol(("a", "b")).setLabelCol("y").setPredictionCol("guess").setBatchSize(8).setEpochs(2)
    estimator.setSeed(3).setValidationFraction(None).setHandleInvalid("skip").setNumRanks(2).setNumClasses(3)
    estimator.setWeightCol("w").setRowsOptions({"shuffle": "none"}).setRawPredictionCol(None).setProbabilityCol(
        "p"
    ).setSupplier(None)
    estimator.setFeaturesDtype("int64")
    assert "batchSize: rows of a batch of one rank (>= 1) (default: 32, current: 8)" in estimator.explainParams()
    copied = estimator.copy({estimator.batchSize: 4})
    assert (copied.getBatchSize(), estimator.getBatchSize(), copied.getEpochs()) == (4, 8, 2)

    estimator.write().overwrite().save(str(tmp_path / "saved"))
    loaded = TorchEstimator.load(str(tmp_path / "saved"))
    assert loaded.uid == estimator.uid and isinstance(loaded.getLoss(), torch.nn.L1Loss)
    assert loaded.getModel()().in_features == 2 and loaded.getOptimizer() is torch.optim.SGD
    names = {"model", "loss"}
    expected = {p.name: estimator.getOrDefault(p) for p in estimator.extractParamMap() if p.name not in names}
    assert {p.name: loaded.getOrDefault(p) for p in loaded.extractParamMap() if p.name not in names} == expected
    with pytest.raises(RunError, match="loss cannot be saved, because it cannot be pickled"):
        plane(2, loss=Unpicklable()).save(str(tmp_path / "other"))


class Unpicklable:
    def __reduce__(self):
        raise TypeError("no")


def test_none_is_set_and_clear_unsets(spark):
    df = spark.sql("SELECT 1D AS a, 2D AS b, 3D AS y")
    estimator = plane(1, optimizer=adam, validationFraction=0.5, batchSize=8).setOptimizer(None)
    estimator.setParams(validationFraction=None, batchSize=None)
    assert estimator.getOptimizer() is None and estimator.getValidationFraction() is None
    assert estimator.isSet(estimator.validationFraction)
    with pytest.raises(RunError, match="batchSize is not set: TorchEstimator needs rows of a batch"):
        estimator.fit(df)
    estimator.clear(estimator.batchSize)
    assert estimator.getBatchSize() == 32
    first, second = estimator._split(df)
    assert second is None and first.count() == 1


@pytest.mark.long
def test_a_validator_is_saved_with_functions_in_its_grid(spark, tmp_path):
    estimator = plane(1)
    grid = ParamGridBuilder().addGrid(estimator.optimizer, [adam, slow]).addGrid(estimator.seed, [1]).build()
    evaluator = RegressionEvaluator(labelCol="y")
    CrossValidator(estimator=estimator, estimatorParamMaps=grid, evaluator=evaluator).save(str(tmp_path / "validator"))
    loaded = CrossValidator.load(str(tmp_path / "validator"))
    copies = [loaded.getEstimator().copy(each) for each in loaded.getEstimatorParamMaps()]
    parameters = [torch.zeros(1, requires_grad=True)]
    assert [type(copy.getOptimizer()(parameters)) for copy in copies] == [torch.optim.Adam, torch.optim.SGD]
    assert [copy.getSeed() for copy in copies] == [1, 1] and "function adam" in str(grid)
    values = {"optimizer": adam, "model": linear(), "loss": known_loss, "supplier": Supplier(2)}
    [made] = ParamGridBuilder().baseOn({estimator.getParam(name): value for name, value in values.items()}).build()
    for name, value in values.items():
        assert estimator.copy(made).getOrDefault(name) is value and isinstance(made[estimator.getParam(name)], Held)
    assert estimator.copy({estimator.optimizer: adam}).getOptimizer() is adam


def test_rows_for_validation_are_on_one_side_in_any_order(spark):
    df = spark.range(2000).selectExpr("id", "id / 3 as y", "array(id, id) as features", "map(id, 'x') as other")
    estimator = plane(1, validationFraction=0.25, featuresCol="features", seed=3)
    first, _ = estimator._split(df.repartition(7))
    _, second = estimator._split(df.orderBy(functions.desc("id")))
    ids = [{row.id for row in side.collect()} for side in (first, second)]
    assert not ids[0] & ids[1] and len(ids[0] | ids[1]) == 2000 and 400 < len(ids[1]) < 600
    _, other = estimator.setSeed(4)._split(df)
    assert {row.id for row in other.collect()} != ids[1]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["split", "folds"])
def test_parameter_maps_are_fitted_and_chosen_by_a_validation(points, supplier, tmp_path, kind):
    """With parallelism=2 two runs want the slots of one session. Folds take two runs more."""
    estimator = plane(supplier, epochs=5)
    grid = ParamGridBuilder().addGrid(estimator.batchSize, [16, 1000]).addGrid(estimator.seed, [1]).build()
    options: dict[str, Any] = {
        "estimator": estimator, "estimatorParamMaps": grid, "evaluator": RegressionEvaluator(labelCol="y"),
        "parallelism": 2, "seed": 1,
    }  # fmt: skip
    validator = TrainValidationSplit(**options) if kind == "split" else CrossValidator(numFolds=2, **options)
    fitted = validator.fit(points.where("id < 500"))
    assert fitted.bestModel.getBatchSize() == 16 and fitted.bestModel.getSeed() == 1
    first, second = fitted.validationMetrics if kind == "split" else fitted.avgMetrics
    assert first < second
    fitted.save(str(tmp_path / "validated"))
    loaded = type(fitted).load(str(tmp_path / "validated"))
    assert predictions(loaded, points) == predictions(fitted, points)
    assert loaded.getEstimatorParamMaps() == grid


@pytest.mark.long
def test_folds_with_the_same_ranks_have_the_same_metrics(points, supplier):
    def fitted(estimator):
        grid = ParamGridBuilder().addGrid(estimator.batchSize, [16, 64]).build()
        evaluator = RegressionEvaluator(labelCol="y")
        return CrossValidator(
            estimator=estimator, estimatorParamMaps=grid, evaluator=evaluator, numFolds=2, parallelism=2, seed=1
        ).fit(points)

    expected, found = (fitted(plane(ranks, seed=3, epochs=2)) for ranks in (RANKS, supplier))
    assert found.avgMetrics == expected.avgMetrics
    assert predictions(found, points) == predictions(expected, points)


def test_a_saved_estimator_has_a_supplier_without_ranks(supplier, points, tmp_path):
    estimator = plane(supplier)
    estimator.fit(points.where("id < 100"))
    estimator.save(str(tmp_path / "estimator"))
    loaded = TorchEstimator.load(str(tmp_path / "estimator"))
    with loaded.getSupplier() as other:
        assert other is not supplier


@pytest.mark.long
def test_optimizers_of_a_pipeline_are_chosen_by_a_validation_split(points, supplier):
    estimator = plane(supplier, featuresCol="features", epochs=2)
    pipeline = Pipeline(stages=[VectorAssembler(inputCols=["a", "b"], outputCol="features"), estimator])
    grid = ParamGridBuilder().addGrid(estimator.optimizer, [slow, adam]).build()
    split = TrainValidationSplit(
        estimator=pipeline, estimatorParamMaps=grid, evaluator=RegressionEvaluator(labelCol="y"), seed=1
    )
    metrics = split.fit(points).validationMetrics
    assert metrics[1] < metrics[0]
    first, second = pipeline.fit(points, [{estimator.epochs: 1}, {estimator.epochs: 2}])
    assert [len(model.stages[-1].history) for model in (first, second)] == [1, 2]


def slow(parameters):
    return torch.optim.SGD(parameters, 1e-6)


def test_an_integer_label_of_a_number_and_rows_that_the_model_cannot_take(points, spark, supplier):
    """L1Loss of (rows, 1) and (rows,) would train a constant in silence."""
    df = points.selectExpr("id", "array(a, b) as v", "int(10 * a) as y")
    model = plane(supplier, loss=torch.nn.L1Loss(), featuresCol="v", optimizer=fast, epochs=10).fit(df)
    assert model.transform(df).selectExpr("corr(prediction, y)").first()[0] > 0.9

    rows = [(0, None), (1, [0.5]), (2, [0.5, None]), (3, [0.5, math.nan]), (4, [1.0, 1.0])]
    bad = spark.createDataFrame(rows, "id int, v array<double>").coalesce(1)
    for i, value in enumerate(["null", r"\[0.5\]", r"\[0.5, null\]", r"\[0.5, NaN\]"]):
        says = f"featuresCol 'v' does not have 2 numbers without null and NaN in the row {value}: correct it, or set "
        with pytest.raises(Exception, match=says):
            model.transform(bad.where(f"id = {i}")).collect()
    expected = pytest.approx(model.module(torch.ones(1, 2)).item())
    skipped = model.copy().setHandleInvalid("skip").transform(bad).collect()
    assert [(row.id, row.prediction) for row in skipped] == [(4, expected)]
    kept = model.copy({model.handleInvalid: "keep"})
    assert predictions(kept, bad) == [None, None, None, None, expected]
    with pytest.raises(RunError, match="featuresCol 'id' has 1 numbers a row, and the model was trained on 2"):
        model.copy().setFeaturesCol("id").transform(bad)
    with pytest.raises(RunError, match="the model adds the column 'v', which df has already"):
        model.copy().setPredictionCol("v").transform(bad)


class Seen(torch.nn.Module):
    """Predicts how many rows it has got at once."""

    def forward(self, features):
        assert features.dtype == torch.float32
        return torch.full((len(features), 1), float(len(features)))


def modelled(module, size=1, outputs=1, classes=0, **params):
    model = TorchModel(module, [], size, outputs, classes)
    return model._set(**params)


def test_a_model_gets_batches(spark):
    df = spark.range(0, 1000, 1, 1)
    numbers = df.selectExpr("double(id) as x", "array(id / 2, 1) as v")
    for params in ({"featuresCol": "x"}, {"featuresCol": "v"}, {"featuresCol": ["x", "x"]}):
        size = 1 if params["featuresCol"] == "x" else 2
        seen = modelled(Seen(), size, batchSize=32, **params).transform(numbers)
        assert seen.agg(functions.max("prediction"), functions.min("prediction")).first()[:] == (32, 1000 % 32)
    wide = modelled(torch.nn.Identity(), 2, 2, featuresCol="v", batchSize=7).transform(numbers)
    assert [row.prediction for row in wide.collect()] == [[i / 2, 1] for i in range(1000)]


def test_integers_keep_their_digits_or_are_refused(spark):
    large = 1 << 24
    columns = ["id", "int(id) as i", "array(id) as v", "decimal(id) as d", "-id as m"]
    exact = spark.range(large - 2, large + 1, 1, 1).selectExpr(*columns)
    names = ["id", "i", "v", "d"]
    found = exact.select(*(Features(exact, name).array[0].alias(name) for name in names)).collect()
    assert [set(row) for row in found] == [{large - 2}, {large - 1}, {large}]
    beyond = spark.range(large + 1, large + 2, 1, 1).selectExpr(*columns, "double(id) as r")
    for name in (*names, "m"):
        says = f"featuresCol '{name}' has the integer -?{large + 1}, of which float32 keeps no digits above {large}"
        with pytest.raises(Exception, match=says):
            beyond.select(Features(beyond, name).array).collect()
    with pytest.raises(Exception, match="featuresCol 'id' has the integer"):
        modelled(torch.nn.Identity(), featuresCol="id", handleInvalid="skip").transform(beyond).collect()
    with pytest.raises(Exception, match=f"labelCol 'id' has the integer {large + 1}"):
        beyond.select(Label(beyond, "id", Labels.NUMBERS).cast()).collect()
    accepted = beyond.select(Label(beyond, "id", Labels.ANY).cast(), Features(beyond, "r").array[0]).first()
    assert accepted[:] == (large + 1, large)


def test_no_column_of_the_user_is_replaced(spark):
    df = spark.sql("SELECT 1D AS x, 'mine' AS Prediction")
    for name in ("prediction", "PREDICTION", "X"):
        with pytest.raises(
            RunError, match=f"the model adds the column '{name}', which df has already .'(Prediction|x)'"
        ):
            modelled(torch.nn.Identity(), featuresCol="x", predictionCol=name).transform(df)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert modelled(torch.nn.Identity(), featuresCol="x").transform(df).first().Prediction == "mine"
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_model_is_saved_in_chunks(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("spark_supplier.ml.torch_model._CHUNK", 1000)
    module = torch.nn.Linear(20, 20)
    modelled(module, 20, 20).save(str(tmp_path / "model"))
    assert len(list(tmp_path.glob("model/*/begin=*"))) > 2
    found = TorchModel.load(str(tmp_path / "model")).module
    assert torch.equal(found.weight, module.weight) and torch.equal(found.bias, module.bias)
    with pytest.raises(Exception, match="(?i)already exists"):
        modelled(module, 20, 20).save(str(tmp_path / "model"))
    assert torch.equal(TorchModel.load(str(tmp_path / "model")).module.weight, module.weight)


BIG = """
import sys
import spark_supplier, torch
from pyspark.sql import SparkSession
from spark_supplier.ml import TorchModel

builder = SparkSession.builder.master("local-cluster[1,2,1024]").config("spark.ui.enabled", False)
builder = builder.config("spark.rpc.message.maxSize", 1).config("spark.driver.maxResultSize", "2m")
spark = spark_supplier.session(builder)
module = torch.nn.Linear(1000, 1000)
TorchModel(module, [], 1000, 1000).save(sys.argv[1])
assert torch.equal(TorchModel.load(sys.argv[1]).module.weight, module.weight)
features = spark.range(3).selectExpr("array_repeat(1D, 1000) as features")
assert TorchModel.load(sys.argv[1]).transform(features).count() == 3
"""


@pytest.mark.long
def test_a_model_larger_than_a_message_is_saved_on_a_cluster(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BIG, str(tmp_path / "model")], capture_output=True, text=True, timeout=240,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


WITHOUT_JAR = """
import spark_supplier
from pyspark.sql import SparkSession
from spark_supplier.ml import TorchModel

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
df = spark.sql("SELECT 4D AS features")
print("predicted:", TorchModel.load("model").transform(df).first().prediction)
from spark_supplier.ml import KMeans, TruncatedSVDModel

for needs_jar in (KMeans, lambda: TruncatedSVDModel.load("model")):
    try:
        needs_jar()
    except spark_supplier.RunError as error:
        print("refused:", error)
"""
MODULES = """
import torch

class Twice(torch.nn.Module):
    def forward(self, features):
        return 2 * features
"""


@pytest.mark.long
@only_classic("the program has a session of its own")
def test_a_saved_model_of_a_module_beside_the_program_without_the_jar(spark, tmp_path, monkeypatch):
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "modules_of_program.py").write_text(MODULES)
    (folder / "program.py").write_text(WITHOUT_JAR)
    monkeypatch.syspath_prepend(folder)
    modelled(importlib.import_module("modules_of_program").Twice()).save(str(tmp_path / "model"))
    done = subprocess.run(
        [sys.executable, str(folder / "program.py")], capture_output=True, text=True, timeout=240,
        cwd=tmp_path, env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "predicted: 8.0" in done.stdout
    for name in ("KMeans", "TruncatedSVDModel"):
        assert f"refused: {name}: the session does not have the Supplier's jar" in done.stdout


def fast(parameters):
    return torch.optim.Adam(parameters, 0.5)


@pytest.fixture(scope="module")
def invalid(spark):
    """Rows with vectors, of which one has no label, one no vector, and one a vector of another length."""
    rows: list[Any] = [(i, Vectors.dense(i / 100, 0.5), i / 100, i % 10 == 0) for i in range(100)]
    rows[50] = (50, Vectors.dense(1, 1), None, True)
    rows[51] = (51, None, 0.5, False)
    rows[52] = (52, Vectors.dense(1), 0.5, False)
    schema = StructType().add("id", "integer").add("v", VectorUDT()).add("y", "double").add("held_out", "boolean")
    return spark.createDataFrame(rows, schema).repartition(3).cache()


def test_a_fit_of_rows_that_are_not_valid(invalid, supplier):
    estimator = plane(supplier, featuresCol="v", validationIndicatorCol="held_out")
    says = r"labelCol 'y' is null or NaN in the row whose 'v' is \[1.0, 1.0\]: correct it, or set handleInvalid"
    with pytest.raises(RunError, match=says):
        estimator.fit(invalid.where("id not in (51, 52)"))
    none = invalid.where("id not in (50, 52)")
    with pytest.raises(Exception, match="featuresCol 'v' has a null or NaN in the row null: correct it"):
        estimator._selected(none, Features(none, "v"), Label(none, "y", Labels.NUMBERS), None).collect()
    history = estimator.setHandleInvalid("skip").fit(invalid).history
    assert all(math.isfinite(value) for value in history[0].values())


def test_a_fit_that_keeps_rows_with_nan(invalid, supplier):
    estimator = plane(
        supplier, model=Known, loss=known_loss, featuresCol="v", handleInvalid="keep", validationFraction=0.3
    )
    history = estimator.fit(invalid).history
    assert all(math.isfinite(value) for value in history[0].values())


class Known(torch.nn.Linear):
    """A module that knows NaN."""

    def __init__(self):
        super().__init__(2, 1)

    def forward(self, features):
        return super().forward(features.nan_to_num())


def known_loss(output, label):
    return (output - label)[~label.isnan()].abs().sum()


@pytest.mark.long
def test_a_fit_or_a_validation_without_rows(points, supplier):
    """As test_supplier_rows.test_no_rows_are_an_error, which is not long."""
    estimator = plane(supplier, validationIndicatorCol="held_out")
    with pytest.raises(RunError, match="df has no rows"):
        estimator.fit(points.where("held_out"))
    with pytest.raises(RunError, match="validation has no rows"):
        estimator.fit(points.where("not held_out"))


@pytest.mark.long
def test_an_array_of_another_length_ends_a_fit(invalid, supplier):
    with pytest.raises(RunError, match="column 'v' has an array of 1 numbers, and one of 2|of 2 numbers, and one of 1"):
        plane(supplier, featuresCol="v").fit(invalid.where("id not in (50, 51)").coalesce(1))


@pytest.mark.long
def test_the_columns_of_a_classifier_are_those_of_mllib(points):
    """With the coefficients of MLlib's own models."""
    df = points.selectExpr("id", "array(a, b) as v", "float(kind) as label", "int(a * 3) as third")
    df = df.withColumn("features", array_to_vector("v")).coalesce(1).cache()
    for labels, classes, outputs in (("label", 2, 1), ("label", 2, 2), ("third", 3, 3)):
        family = "binomial" if outputs == 1 else "multinomial"
        expected = LogisticRegression(labelCol=labels, family=family, maxIter=3).fit(df)
        module = torch.nn.Linear(2, outputs)
        with torch.no_grad():
            module.weight.copy_(torch.tensor(expected.coefficientMatrix.toArray()))
            module.bias.copy_(torch.tensor(expected.interceptVector.toArray()))
        model = modelled(module, 2, outputs, classes, labelCol=labels, batchSize=300)
        assert (model.numClasses, model.numFeatures) == (expected.numClasses, expected.numFeatures) == (classes, 2)
        found, reference = model.transform(df), expected.transform(df)
        assert [(f.name, f.dataType) for f in found.schema] == [(f.name, f.dataType) for f in reference.schema]
        for one, other in zip(found.orderBy("id").collect(), reference.orderBy("id").collect()):
            for name in ("rawPrediction", "probability"):
                assert one[name].toArray() == pytest.approx(other[name].toArray(), abs=1e-5)
            assert one.prediction == other.prediction or max(one.probability) < 0.5 + 1e-5
        evaluators = [MulticlassClassificationEvaluator(labelCol=labels, metricName="logLoss")]
        for evaluator in evaluators + [BinaryClassificationEvaluator(labelCol=labels)] * (classes == 2):
            assert evaluator.evaluate(found) == pytest.approx(evaluator.evaluate(reference), abs=1e-3)


def test_columns_of_a_classifier_that_are_left_out_and_rows_of_nan(points):
    model = modelled(Known(), 2, 1, 2, featuresCol=["a", "b"])
    model.setParams(rawPredictionCol=None, probabilityCol="")
    assert model.transform(points).columns == [*points.columns, "prediction"]
    with pytest.raises(RunError, match="the model adds the column 'A', which df has already .'a'.: set another name"):
        model.copy().setProbabilityCol("A").transform(points)
    with pytest.raises(RunError, match="the model adds the column 'prediction', which df has already"):
        model.copy().setProbabilityCol("prediction").transform(points)
    nothing = points.selectExpr("id", "a", "if(id % 2 = 0, b, null) as b")
    for outputs in (1, 3):
        module = torch.nn.Linear(2, outputs)
        found = modelled(module, 2, outputs, outputs + 1, featuresCol=["a", "b"], handleInvalid="keep").transform(
            nothing
        )
        assert found.where("(prediction is null) != (id % 2 = 1)").count() == 0


@pytest.mark.parametrize(
    "kind", ["classes", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("one logit", "one logit of a grid"))]
)
def test_a_pipeline_classifies_text(points, supplier, tmp_path, kind):
    """From text to text, once with a grid whose fits are chosen by a metric of classes."""
    # The seed of the split is none of the points', which would choose the rows by their features.
    names = ["low", "middle", "high"] if kind == "classes" else ["under", "over"]
    value = "int((a + b) * 1.5)" if kind == "classes" else "int(a > b)"
    texts = ", ".join(f"'{name}'" for name in names)
    df = points.selectExpr("id", "a", "b", f"array({texts})[{value}] as name", f"{value} as number")
    indexer = StringIndexer(inputCol="name", outputCol="label", stringOrderType="alphabetAsc").fit(df)
    estimator = plane(
        supplier, labelCol="label", optimizer=fast, featuresCol="features", epochs=12,
        **({"model": partial(torch.nn.Linear, 2, 3), "loss": torch.nn.CrossEntropyLoss()} if kind == "classes" else {
            "numClasses": 2, "loss": torch.nn.BCEWithLogitsLoss()
        }),
    )  # fmt: skip
    pipeline = Pipeline(stages=[
        indexer, VectorAssembler(inputCols=["a", "b"], outputCol="features"), estimator,
        IndexToString(inputCol="prediction", outputCol="found", labels=indexer.labels),
    ])  # fmt: skip
    if kind != "one logit of a grid":
        fitted = best = pipeline.fit(df)
    else:
        grid = ParamGridBuilder().addGrid(estimator.optimizer, [slow, fast]).build()
        evaluator = MulticlassClassificationEvaluator(metricName="accuracy")
        fitted = TrainValidationSplit(
            estimator=pipeline, estimatorParamMaps=grid, evaluator=evaluator, parallelism=2, seed=5
        ).fit(df)
        assert fitted.validationMetrics[1] > max(0.85, fitted.validationMetrics[0])
        best = fitted.bestModel
    fitted.save(str(tmp_path / "fitted"))
    loaded = type(fitted).load(str(tmp_path / "fitted"))
    assert loaded.transform(df).where("name = found").count() > 0.85 * ROWS
    columns = "id", "rawPrediction", "probability", "prediction"
    found, expected = (model.transform(df).select(*columns).orderBy("id").collect() for model in (loaded, fitted))
    assert found == expected
    assert best.stages[2].numClasses == len(names)


def zeros():
    module = torch.nn.Linear(2, 1)
    torch.nn.init.zeros_(module.weight)
    torch.nn.init.zeros_(module.bias)
    return module


def test_weights_of_rows_are_those_of_numpy(points):
    """Steps of gradient descent with all rows, in numpy."""
    df = points.selectExpr("id", "a", "b", "y", "id % 3 as w", "held_out").where("id < 100").cache()
    rows = df.orderBy("id").collect()
    x, y, w = (
        numpy.array(value) for value in ([[r.a, r.b, 1] for r in rows], [r.y for r in rows], [r.w for r in rows])
    )
    held_out = numpy.array([r.held_out for r in rows])
    side = ~held_out
    with Supplier(1) as one:
        for loss, rate in ((torch.nn.MSELoss(), 0.3), (partial(torch.nn.functional.mse_loss, reduction="sum"), 0.004)):
            model = plane(
                one, model=zeros, loss=loss, optimizer=partial(torch.optim.SGD, lr=rate), weightCol="w",
                batchSize=100, epochs=3, validationIndicatorCol="held_out",
            ).fit(df)  # fmt: skip
            found, histories = numpy.zeros(3), []
            for _ in range(3):
                errors = (x @ found - y) ** 2 * w
                before = errors[side].sum() / w[side].sum()
                gradient = (2 * (x @ found - y) * w)[side] @ x[side]
                found = found - rate * gradient / (side.sum() if isinstance(loss, torch.nn.MSELoss) else 1)
                after = ((x @ found - y) ** 2 * w)[held_out].sum() / w[held_out].sum()
                expected = {"loss": before, "validation_loss": after}
                histories.append({name: pytest.approx(value, rel=1e-4) for name, value in expected.items()})
            weights = [*model.module.weight[0].tolist(), model.module.bias.item()]
            assert weights == pytest.approx(found, rel=1e-4, abs=1e-5) and model.history == histories


@pytest.mark.parametrize("weight", ["-1", "double('nan')", "null", "float('inf')"])
def test_a_weight_that_is_none_is_refused_or_left_out(points, weight):
    df = points.selectExpr("id", "a", "b", "y", f"if(id < 3, {weight}, 0.5) as w")
    assert df.where(weight_column(df, "w")[1]).count() == ROWS - 3
    estimator, features, label = plane(1, weightCol="w"), Features(df, ["a", "b"]), Label(df, "y", Labels.NUMBERS)
    with pytest.raises(Exception, match="weightCol 'w' is no number of 0 or more in the row whose 'a, b' is "):
        estimator._selected(df, features, label, "w").collect()


def test_outputs_and_labels_that_are_no_classes(points):
    def training(classes, labels):
        return Training(linear, torch.nn.MSELoss(), None, 0, "x", "y", labels, classes)

    training(2, Labels.NUMBERS).check_outputs(1)
    training(3, Labels.CLASSES).check_outputs(3)
    training(0, Labels.NUMBERS).check_outputs(1)
    for classes, outputs in ((2, 3), (3, 1), (3, 2)):
        with pytest.raises(RunError, match=f"numClasses is {classes}, and the model has {outputs} outputs: give it"):
            training(classes, Labels.ANY).check_outputs(outputs)
    with pytest.raises(RunError, match="the loss takes classes, and the model has one output"):
        training(0, Labels.CLASSES).check_outputs(1)

    for number in ("2", "-1", "0.5D", "2.0D"):
        df = points.selectExpr(f"{number} as kind")
        for labels in (Labels.NUMBERS, Labels.CLASSES, Labels.ANY):
            with pytest.raises(Exception, match="labelCol 'kind' has .*, and numClasses is 2: labels must be 0 to 1"):
                df.select(Label(df, "kind", labels, 2).or_error(functions.lit(""))).collect()
    df = points.selectExpr("if(id = 0, -100, 1) as kind")
    assert df.select(Label(df, "kind", Labels.CLASSES, 2, -100).cast().alias("k")).distinct().count() == 2
    df = points.selectExpr("if(id = 0, null, true) as kind")
    kept = df.select(Label(df, "kind", Labels.NUMBERS, 2).or_nan(functions.lit("")).alias("k"))
    assert kept.where("isnan(k)").count() == 1


class Embedded(torch.nn.Module):
    """Of ids that float32 does not have."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(5, 1)

    def forward(self, ids):
        assert ids.dtype == torch.int64
        return self.table(ids % (1 << 24)).sum((1, 2)).reshape(-1, 1)


def test_ids_are_int64(spark, supplier):
    large = 1 << 24
    df = spark.range(200).selectExpr("id", f"{large} + id % 5 as x", f"array({large} + id % 5, 1L) as v", "id % 5 as y")
    model = plane(supplier, model=Embedded, featuresCol="v", featuresDtype="int64", optimizer=fast, epochs=30).fit(df)
    assert model.transform(df).selectExpr("max(abs(prediction - y))").first()[0] < 0.5
    for columns, size in (("x", 1), (["x", "x"], 2)):
        found = modelled(model.module, size, featuresCol=columns, featuresDtype="int64").transform(df)
        assert found.count() == 200 and found.selectExpr("count(distinct prediction)").first()[0] == 5
    nulls = spark.sql(
        "SELECT array(1L, null) AS v UNION ALL SELECT null UNION ALL SELECT array(1L) UNION ALL SELECT array(2L, 3L)"
    )
    assert model.copy().setHandleInvalid("skip").transform(nulls).count() == 1
    for mode in ("error", "keep"):
        with pytest.raises(Exception, match="featuresCol 'v' does not have 2 numbers without null"):
            model.copy().setHandleInvalid(mode).transform(nulls).collect()
    with pytest.raises(RunError, match="featuresCol names 'f', which is array<double>, and featuresDtype is int64"):
        model.copy().setFeaturesCol("f").transform(df.selectExpr("array(1D, 2D) as f"))


class Tied(torch.nn.Module):
    """One parameter under two names, one that is not trained, and buffers of which state_dict has one."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.second.bias.requires_grad = False
        self.register_buffer("kept", torch.arange(3.0))
        self.register_buffer("other", torch.arange(3.0) + 1, persistent=False)
        self.plain = torch.full((3,), 7.0)

    def forward(self, features):
        return self.second(self.first(features)) + self.kept * self.other + self.plain


@pytest.mark.long
def test_the_tensors_of_a_module_are_saved_beside_its_pickle(spark, tmp_path):
    module = Tied()
    modelled(module, 3, 3).save(str(tmp_path / "model"))
    found = TorchModel.load(str(tmp_path / "model")).module
    assert found.first.weight is found.second.weight and not found.second.bias.requires_grad
    assert isinstance(found.first.weight, torch.nn.Parameter) and not isinstance(found.kept, torch.nn.Parameter)
    features = torch.rand(4, 3)
    assert torch.equal(found(features), module(features))
    rows = spark.read.parquet(str(tmp_path / "model" / "state_dict")).orderBy("begin").collect()
    state = torch.load(io.BytesIO(b"".join(row.bytes for row in rows)), weights_only=True)
    assert {name: value.tolist() for name, value in state.items()} == {
        name: value.tolist() for name, value in module.state_dict().items()
    }
    fresh = Tied()
    fresh.load_state_dict(state)
    assert torch.equal(fresh(features), module(features))


def test_a_number_that_is_no_class_is_refused(points):
    df = points.selectExpr("double(kind) + 0.5 as kind")
    label = Label(df, "kind", Labels.CLASSES).or_error(functions.lit(""))
    with pytest.raises(Exception, match=r"labelCol 'kind' has [01]\.5, and the loss takes numbers of classes"):
        df.select(label).collect()


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"featuresCol": ["a", "c"]}, r"df has no column 'c', which featuresCol names \(columns of df: id, a, b"),
        ({"featuresCol": ["a", "text"]}, "featuresCol names 'text', which is string: it must be of numbers"),
        ({"labelCol": "z"}, "df has no column 'z', which labelCol names"),
        ({"labelCol": "text"}, "labelCol 'text' is string, must be a number: cast it"),
        ({"featuresCol": "y"}, "featuresCol, labelCol and weightCol must be different, and are y, y"),
        ({"weightCol": "y"}, "featuresCol, labelCol and weightCol must be different, and are the features, y, y"),
        ({"weightCol": "w"}, "df has no column 'w', which weightCol names"),
        ({"weightCol": "text"}, "weightCol 'text' is string, must be a number"),
        ({"featuresDtype": "int64"}, "featuresCol names 'a', which is double, and featuresDtype is int64: cast it"),
        ({"numClasses": 2, "loss": torch.nn.BCELoss()}, "the loss takes probabilities: let the model give logits"),
        ({"supplier": Supplier(1)}, "numRanks and supplier are both set"),
        ({"validationIndicatorCol": "kind"}, "validationIndicatorCol 'kind' is int, must be boolean"),
        ({"validationIndicatorCol": "held_out", "validationFraction": 0.1}, "are both set"),
        ({"loss": None}, "loss is not set"),
    ],
)
def test_wrong_columns_are_refused_before_anything_starts(points, params, says):
    with pytest.raises(RunError, match=says):
        plane(1, **params).fit(points.selectExpr("*", "string(id) as text"))


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"validationFraction": 1.5}, "validationFraction is 1.5, must be between 0 and 1"),
        ({"batchSize": 0}, "batchSize is 0, must be 1 or more"),
        ({"numClasses": 1}, "numClasses is 1, must be 2 or more"),
        ({"supplier": 2}, r"supplier is 2 .int., must be a Supplier. For a number of ranks, set numRanks"),
        ({"featuresDtype": "int8"}, "featuresDtype is 'int8', must be one of float32, int64"),
        ({"handleInvalid": "drop"}, "handleInvalid is 'drop', must be one of error, skip, keep"),
        ({"rowsOptions": {"batch_size": 3}}, "rowsOptions has 'batch_size', which the estimator sets: set batchSize"),
        ({"rowsOptions": {"shufle": "all"}}, "rowsOptions has 'shufle', must be options of Rows: shuffle, "),
        ({"label_col": "y"}, "unexpected keyword argument 'label_col'"),
    ],
)
def test_wrong_params_are_refused_where_they_are_set(params, says):
    with pytest.raises((ValueError, TypeError), match=says):
        plane(1, **params)
