"""The GPUs of executors, in ranks of Spark Connect. Spark believes a script, which names a card for each worker."""

import os
import sys

import pytest

from connect_server import connect_server
from supplier_session import prepare_environment, shared_memory

pytest.importorskip("pyspark", reason="no PySpark in this environment")
pytest.importorskip("pyspark.sql.connect.session", reason="no gRPC in this environment")
pytest.importorskip("torch", reason="no PyTorch (on Debian: apt-get install python3-torch)")

prepare_environment()
import spark_supplier  # noqa: E402
from pyspark import cloudpickle  # noqa: E402
from spark_supplier import Rows, Supplier  # noqa: E402

# Ranks do not have this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def cards(data):
    from torch import distributed

    for _ in data:
        pass
    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, (os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ["LOCAL_RANK"]))
    return gathered


@pytest.mark.long
def test_the_task_that_starts_ranks_needs_no_gpu(tmp_path):
    discovery = tmp_path / "discover"
    discovery.write_text(
        """#!/bin/sh\nmkdir "$0.first" && gpu=3 || gpu=5\necho '{"name": "gpu", "addresses": ["'$gpu'"]}'\n"""
    )
    discovery.chmod(0o755)
    settings = {
        "spark_worker_resource_gpu_amount": "1", "spark_executor_resource_gpu_amount": "1",
        "spark_task_resource_gpu_amount": "1", "spark_worker_resource_gpu_discoveryScript": str(discovery),
    }  # fmt: skip
    with (
        shared_memory() as folder,
        connect_server("local-cluster[2,2,1024]", spark_supplier.jars(), **settings) as server,
    ):
        spark = spark_supplier.session(remote=server.remote)
        found = Supplier(2, folder=folder).run(cards, Rows(spark.range(0, 20, 1, 2), uneven="keep"))
        spark.stop()
    # Both GPUs are for tasks of ranks.
    assert sorted(found[0][0].split(",")) == ["3", "5"]
    assert found == [(found[0][0], rank) for rank in ("0", "1")]
