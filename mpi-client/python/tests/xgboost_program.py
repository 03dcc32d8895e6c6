"""XGBoost on two ranks: with columns and weights, with rows on one rank only, and with a rank that raises."""

from typing import Any

import numpy
import spark_supplier.xgboost
import xgboost
from pyspark.sql import SparkSession
from spark_supplier import RankError, Rows, Supplier, session
from torch import distributed


def train(data, features):
    with spark_supplier.xgboost.collective():
        rows = spark_supplier.xgboost.matrix(data, features, "label", weight="weight", max_bin=64)
        model = bytes(xgboost.train({"max_depth": 4, "max_bin": 64}, rows, num_boost_round=50).save_raw())
    ranks = [None] * distributed.get_world_size()
    distributed.all_gather_object(ranks, (rows.num_row(), rows.get_weight().sum(), model))
    return ranks


def fail(data):
    with spark_supplier.xgboost.collective():
        if distributed.get_rank() == 1:
            raise ValueError("no model")
        spark_supplier.xgboost.matrix(data, ["a"], "label")


def error_of(model):
    points = numpy.random.default_rng(1).random((100, 2))
    predicted = xgboost.Booster(model_file=bytearray(model)).inplace_predict(points)
    return abs(predicted - (points[:, 0] + 2 * points[:, 1])).mean()


spark = session(SparkSession.builder)
df = spark.range(0, 1000, 1, 8).selectExpr("id", "float(rand(1)) as a", "float(id % 2) as weight")
df = df.selectExpr("*", "if(id % 10 = 0, null, float(rand(2))) as b").drop("id")
df = df.selectExpr("*", "array(a, b) as features", "float(a + 2 * coalesce(b, 0.5)) as label")
options: Any = {"batch_size": 300, "uneven": "keep", "nulls": {"b": float("nan"), "features": float("nan")}}
with Supplier(2) as supplier:
    for frame, features in ((df, ["a", "b"]), (df.coalesce(1), "features")):
        ranks = supplier.run(train, Rows(frame, repartition=False, **options), features=features)
        rows, weights, models = zip(*ranks)
        print(f"rows {rows}, weights {sum(weights)}, models {len(set(models))}, error {error_of(models[0]):.3f}")
    try:
        supplier.run(fail, Rows(df, **options))
    except RankError as error:
        print(f"refused: {error}")
