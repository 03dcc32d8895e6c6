"""First programs of users, one after the other. test_quiet_runs.py reads what they print."""

from typing import Any

import spark_supplier
import torch
from pyspark.sql import SparkSession
from spark_supplier import Mpirun, Rows, Supplier
from spark_supplier.ml import TorchEstimator

RANKS, ROWS, LINES = 2, 20000, 8000
OPTIONS: dict[str, Any] = {"columns": ["id"], "batch_size": 16}


def returns_at_once(data):
    return "at once"


def returns_after_a_batch(data):
    next(iter(data))
    return "after a batch"


def prints_much(data, lines):
    for line in range(lines):
        print(f"{line:6} {'x' * 1000}")
    return sum(len(batch["id"]) for batch in data)


def predicts(data):
    with data.results() as out:
        for batch in data:
            out.write({"id": batch["id"]})


if __name__ == "__main__":
    cores = 2 * RANKS + 1
    spark = spark_supplier.session(SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false"))
    df = spark.range(0, ROWS, 1, 8)
    supplier = Supplier(RANKS)
    # For a test that does not read, for longer than that time.
    print(Supplier(RANKS, backend=None, stall_timeout=8).run(prints_much, Rows(df, **OPTIONS), LINES))
    returned = [
        supplier.run(returns_after_a_batch, Rows(df, epochs=2, validation=df, **OPTIONS)),
        Supplier(RANKS, backend=None).run(returns_at_once, Rows(df, **OPTIONS)),
        supplier.run(returns_after_a_batch, Rows(df.repartition(4), **OPTIONS, shuffle="all")),
        Supplier(RANKS, launcher=Mpirun(), backend=None).run(returns_at_once, Rows(df, **OPTIONS)),
    ]
    with Supplier(RANKS, backend=None).run(predicts, Rows(df, **OPTIONS), results="id long") as results:
        print(returned, results.rows.count())
    labelled = df.limit(100).selectExpr("float(id) as features", "float(id) as label")
    fitted = TorchEstimator(model=torch.nn.Linear(1, 1), loss=torch.nn.MSELoss(), validationFraction=0.2).fit(labelled)
    print(fitted.transform(labelled).count())
