"""Supplier.run and TorchEstimator on a GPU: Spark's rows arrive on the device, and results come back from it.

`make test-gpu` runs these tests on a machine with a GPU. Elsewhere they are skipped.
"""

import os
import pathlib
import signal
import tempfile

import pytest

from supplier_session import session_fixture

for module in ("pyspark", "torch", "pandas"):
    pytest.importorskip(module)

import spark_supplier  # noqa: E402
import torch  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402
from spark_supplier import Rows, Supplier  # noqa: E402
from spark_supplier.ml import TorchEstimator  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

RANKS, ROWS = 2, 100_000


def gpus_of_driver():
    """The driver has one GPU, as NVIDIA's tool names it."""
    script = pathlib.Path(tempfile.mkdtemp(), "gpus")
    script.write_text(
        """#!/bin/sh
        gpu=$(nvidia-smi --query-gpu=index --format=csv,noheader | head -n 1)
        echo '{"name": "gpu", "addresses": ["'$gpu'"]}'
        """
    )
    script.chmod(0o755)
    return {"spark.driver.resource.gpu.amount": "1", "spark.driver.resource.gpu.discoveryScript": str(script)}


spark = session_fixture(2 * RANKS + 1, gpus_of_driver)


def describe(data):
    """Of each rank: the GPUs that it sees, their number, its device, the backend, and sums over all ranks."""
    from torch import distributed

    for _ in data:
        pass
    on_cpu, on_gpu = torch.ones(2), torch.ones(3, device="cuda")
    distributed.all_reduce(on_cpu)
    distributed.all_reduce(on_gpu)
    mine = (
        os.environ.get("CUDA_VISIBLE_DEVICES"), torch.cuda.device_count(), torch.cuda.current_device(),
        distributed.get_backend(), on_cpu.tolist() + on_gpu.tolist(),
    )  # fmt: skip
    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, mine)
    return gathered


def test_one_rank_and_its_gpu(spark, capfd):
    [(visible, count, device, backend, sums)] = Supplier(ranks=1).run(describe, spark.range(10))
    assert (visible.isdigit(), count, device, backend, sums) == (True, 1, 0, "cpu:gloo,cuda:nccl", [1.0] * 5)
    assert "use gloo" not in capfd.readouterr().err


def test_two_ranks_share_a_gpu(spark, capfd):
    found = Supplier(ranks=2).run(describe, spark.range(10))
    assert [rank[1:] for rank in found] == [(1, 0, "gloo", [2.0] * 5)] * 2
    says = "supply: the ranks use gloo: nccl needs a GPU for each rank, and "
    assert says in (err := capfd.readouterr().err) and " has 2 ranks and 1 GPUs" in err


def test_nccl_with_two_ranks_on_one_gpu(spark):
    with pytest.raises(spark_supplier.RunError, match="nccl needs a GPU for each rank.* has 2 ranks and 1 GPUs"):
        Supplier(ranks=2, backend="nccl").run(describe, spark.range(10))


def test_a_rank_that_sees_no_gpu(spark):
    def work(data):
        try:
            data.to("cuda")
        except spark_supplier.SupplyError as error:
            return str(error)

    hidden = Supplier(ranks=1, environment={"CUDA_VISIBLE_DEVICES": ""}).run(work, spark.range(10))
    assert "finds no CUDA device here" in hidden


@pytest.mark.parametrize("ranks", [1, 2])
def test_rows_that_ranks_exchange_arrive_on_the_device(spark, ranks):
    """Over gloo, also if the default group is one of nccl."""

    def work(data):
        from torch import distributed

        data.to("cuda")
        epochs = []
        for epoch in data.epochs():
            ids, rights = [], []
            for batch in epoch:
                ids.append(batch["id"])
                rights.append((batch["features"][:, 1] == batch["id"] * 0.5).all() & batch["features"].is_cuda)
            gathered = [None] * distributed.get_world_size()
            distributed.all_gather_object(gathered, (torch.cat(ids).tolist(), all(map(bool, rights))))
            epochs.append(gathered)
        return epochs

    df = spark.range(20_000, numPartitions=4).selectExpr("id", "array(float(id), id / 2.0F, 1.0F) as features")
    supplier = Supplier(ranks=ranks, ring="1MiB", block="128KiB")
    found = supplier.run(work, Rows(df, batch_size=300, epochs=2, uneven="keep", shuffle="all"))
    orders = [[number for ids, _ in epoch for number in ids] for epoch in found]
    assert all(right for epoch in found for _, right in epoch)
    assert [sorted(order) for order in orders] == [list(range(20_000))] * 2
    assert orders[0] != orders[1] != sorted(orders[1])


def test_kept_ranks_free_the_devices_memory_between_calls(spark):
    def work(data, size):
        reserved = torch.cuda.memory_reserved()
        data.to("cuda")
        rows = sum(len(batch["id"]) for batch in data)
        torch.set_default_device("cuda")
        used = torch.empty(size, dtype=torch.uint8)
        return os.getpid(), reserved, torch.cuda.memory_reserved(), rows, used.device.type

    with Supplier(ranks=1) as supplier:
        first, second = (supplier.run(work, Rows(spark.range(1000), uneven="keep"), size=size) for size in (1 << 28, 1))
    assert first[0] == second[0] and first[3:] == second[3:] == (1000, "cuda")
    assert first[2] >= 1 << 28 and second[1] < 1 << 26


def test_training_on_the_device_continues_after_a_killed_rank(spark, tmp_path):
    """With the same model, bit by bit, as without a failure."""

    def work(data, dies):
        data.to("cuda")
        model = torch.nn.Linear(3, 1, device="cuda")
        torch.nn.init.ones_(model.weight)
        torch.nn.init.zeros_(model.bias)
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        if saved := data.saved:
            assert {tensor.device.type for tensor in saved["model"].values()} == {"cpu"}
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
        steps = 0
        for epoch in data.epochs():
            for batch in epoch:
                optimizer.zero_grad()
                (model(batch["features"])[:, 0] - batch["id"] / 1e5).square().mean().backward()
                optimizer.step()
                steps += 1
                data.save(lambda: {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
                if dies and steps == 13 and data.restarts == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
        return data.restarts, model.weight.tolist(), model.bias.tolist()

    df = spark.range(2000, numPartitions=2).selectExpr(
        "id", "transform(array(id, id * 2, 5), x -> float(x / 1e4)) as features"
    )

    def run(name, dies):
        supplier = Supplier(ranks=1, restarts=1, checkpoints=f"file://{tmp_path}/{name}")
        return supplier.run(work, Rows(df, batch_size=100, epochs=2), dies=dies)

    restarts, *killed = run("killed", True)
    assert (restarts, run("whole", False)) == (1, (0, *killed))


def test_validation_data_arrive_on_the_device(spark):
    def work(data):
        data.to("cuda")
        seen = {batch["id"].device.type for batch in data}
        return seen | {batch["id"].device.type for batch in data.validation}

    frames = Rows(spark.range(1000), validation=spark.range(100), uneven="keep")
    assert Supplier(ranks=RANKS).run(work, frames) == {"cuda"}


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
    run = Supplier(ranks=RANKS).run(work, Rows(df, batch_size=500, uneven="keep"), results="id, total float not null")
    expected = df.select("id", sum(columns).cast("float").alias("total"))
    assert run.value == {"cuda"}
    assert run.rows.count() == ROWS and run.rows.exceptAll(expected).count() == 0
    run.release()


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
