"""TorchEstimator and TorchModel, in pipelines of pyspark.ml."""

import math

import pytest

from supplier_session import prepare_environment, session_fixture, shared_memory

prepare_environment()
pytest.importorskip("pyspark")

import torch  # noqa: E402
from pyspark.ml import Pipeline  # noqa: E402
from pyspark.ml.feature import VectorAssembler  # noqa: E402
from supply.spark import RunError, Supplier, TorchEstimator  # noqa: E402

RANKS, ROWS, EPOCHS = 2, 1000, 6


spark = session_fixture(2 * RANKS + 1)


@pytest.fixture
def supplier():
    with shared_memory() as folder:
        yield Supplier(ranks=RANKS, folder=folder)


@pytest.fixture
def points(spark):
    df = spark.range(0, ROWS, 1, 3).selectExpr("id", "rand(1) as a", "rand(2) as b", "id % 5 = 0 as held_out")
    return df.selectExpr("*", "2 * a - b as y", "int(a > b) as kind")


def test_validation_rows_of_one_rank_alone(points, supplier):
    estimator = TorchEstimator(
        lambda: torch.nn.Linear(1, 1), torch.nn.MSELoss(), features_col="a.x", label_col="y.x", batch_size=16, seed=1,
        optimizer=lambda parameters: torch.optim.SGD(parameters, 0.05), validation="held.out", supplier=supplier,
    )  # fmt: skip
    df = points.selectExpr("a as `a.x`", "y as `y.x`", f"id >= {ROWS - 3} as `held.out`")
    assert estimator.fit(df).history[0]["validation_loss"] > 0


def test_a_pipeline_learns_a_plane_and_predicts_a_number(points, supplier):
    estimator = TorchEstimator(
        lambda: torch.nn.Linear(2, 1), torch.nn.MSELoss(), label_col="y", epochs=EPOCHS, batch_size=16, seed=1,
        optimizer=lambda parameters: torch.optim.Adam(parameters, 0.05), validation="held_out", supplier=supplier,
    )  # fmt: skip
    pipeline = Pipeline(stages=[VectorAssembler(inputCols=["a", "b"], outputCol="features"), estimator])
    fitted = pipeline.fit(points)
    history = fitted.stages[-1].history
    assert [set(losses) for losses in history] == [{"loss", "validation_loss"}] * EPOCHS
    assert history[-1]["loss"] < history[0]["loss"] / 100 and history[-1]["validation_loss"] < 0.001
    predicted = fitted.transform(points)
    assert predicted.schema["prediction"].dataType.simpleString() == "double"
    assert predicted.selectExpr("max(abs(prediction - y))").first()[0] < 0.1
    assert predicted.columns == [*points.columns, "features", "prediction"]


@pytest.mark.long
def test_a_classifier_of_two_columns_predicts_an_array(points, supplier):
    module = torch.nn.Linear(2, 2)
    before = module.weight.detach().clone()
    estimator = TorchEstimator(
        module, torch.nn.CrossEntropyLoss(), features_col=["a", "b"], label_col="kind", prediction_col="scores",
        batch_size=16, validation=0.2, supplier=supplier,
    )  # fmt: skip
    model = estimator.fit(points)
    assert [math.isfinite(value) for losses in model.history for value in losses.values()] == [True, True]
    # The module of the caller is not the one that ranks train.
    assert torch.equal(module.weight, before) and not torch.equal(model.module.weight, before)
    row = model.transform(points).first()
    expected = model.module(torch.tensor([[row["a"], row["b"]]])).tolist()[0]
    assert row["scores"] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"features_col": ["a", "c"], "label_col": "y"}, r"df has no column 'c' \(columns of df: id, a, b"),
        ({"features_col": "a", "label_col": "z"}, "df has no column 'z'"),
        ({"features_col": "a", "label_col": "y", "validation": 1.5}, "validation is 1.5, must be between 0 and 1"),
    ],
)
def test_wrong_columns_are_refused_before_anything_starts(points, options, says):
    with pytest.raises(RunError, match=says):
        TorchEstimator(torch.nn.Linear(1, 1), torch.nn.MSELoss(), **options).fit(points)
