"""Supplier.run and TorchEstimator on a GPU: Spark's rows arrive on the device, and results come back from it.

`make test-gpu` runs these tests on a machine with a GPU. Elsewhere they are skipped.
"""

import sys

import pytest

from supplier_session import prepare_environment, session_fixture

prepare_environment()
for module in ("pyspark", "torch", "pandas"):
    pytest.importorskip(module)

import supply.spark  # noqa: E402
import torch  # noqa: E402
from pyspark import cloudpickle  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402
from supply.spark import Supplier, TorchEstimator  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

RANKS, ROWS = 2, 100_000
# The ranks have no such module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

spark = session_fixture(2 * RANKS + 1)


def test_rows_arrive_on_the_device_and_results_come_back(spark):
    def work(data):
        data.to("cuda")
        seen = set()
        with data.results() as out:
            for epoch in data.epochs():
                for batch in epoch:
                    seen.add(batch["features"].device.type)
                    out.write({"id": batch["id"], "total": batch["features"].sum(1)})
        return seen

    columns = [(F.col("id") * factor % 1000).cast("float") for factor in range(1, 9)]
    df = spark.range(ROWS, numPartitions=8).select("id", F.array(*columns).alias("features"))
    run = Supplier(ranks=RANKS).run(work, df, batch_size=500, uneven="keep", results="id, total float not null")
    expected = df.select("id", sum(columns).cast("float").alias("total"))
    assert run.value == {"cuda"}
    assert run.results.count() == ROWS and run.results.exceptAll(expected).count() == 0
    supply.spark.release(run.results)


def test_an_estimator_trains_on_the_device(spark):
    a, b = (F.col("id") % 17 / 17).cast("float"), (F.col("id") % 5 / 5).cast("float")
    df = spark.range(4000, numPartitions=4).select(a.alias("a"), b.alias("b"), (2 * a - b).cast("float").alias("y"))
    estimator = TorchEstimator(
        model=lambda: torch.nn.Linear(2, 1), loss=torch.nn.MSELoss(), labelCol="y", featuresCol=["a", "b"],
        optimizer=lambda parameters: torch.optim.Adam(parameters, 0.05), batchSize=100, epochs=20, supplier=RANKS,
    )  # fmt: skip
    model = estimator.fit(df)
    losses = [epoch["loss"] for epoch in model.history]
    assert losses[-1] < 1e-3 < losses[0]
