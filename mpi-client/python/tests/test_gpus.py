"""The GPUs, limits and settings of executors, in the ranks. Spark believes a script, which names a GPU."""

import os
import resource

import pytest
import spark_supplier
from spark_supplier import Rows, Supplier

from connect_server import connect_server
from supplier_session import found_by

pytestmark = pytest.mark.long


def discovery(folder):
    script = folder / "discover"
    # The first worker has another one than the second.
    script.write_text(
        """#!/bin/sh\nmkdir "$0.first" && gpu=3 || gpu=5\necho '{"name": "gpu", "addresses": ["'$gpu'"]}'\n"""
    )
    script.chmod(0o755)
    return str(script)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the runs of the program return, or say."""
    return found_by("gpu_program.py", discovery(tmp_path_factory.mktemp("gpus")), OMP_NUM_THREADS="9")


def test_ranks_have_the_gpus_and_the_cores_of_the_executors(found):
    of_node = len(os.sched_getaffinity(0))
    cores = str(max(1, of_node // 2))
    # Spark gives executors of its own clusters OMP_NUM_THREADS=1, or spark.task.cpus: that is not the user's.
    assert [rank[1] for rank in found["one"]] == [str(of_node)]
    # Both tasks of ranks have a GPU, so the task that starts the ranks has none.
    gpus = found["two"][0][0]
    assert sorted(gpus.split(",")) == ["3", "5"]
    assert found["two"] == [[gpus, cores, rank, resource.RLIM_INFINITY] for rank in ("0", "1")]
    assert found["given"] == [["7", "4", rank, resource.RLIM_INFINITY] for rank in ("0", "1")]
    # All workers of a local cluster are there, so no other executor will come.
    assert "3 ranks need 3 task slots" in found["three"] and "spark.task.resource.gpu.amount" in found["three"]
    assert "waited" not in found["three"]


def test_runs_at_once_have_different_gpus(found):
    assert sorted(found["at once"]) == ["3", "5"]


def test_idle_ranks_yield_their_gpus(found):
    beside = found["beside idle ranks"]
    assert sorted([beside["idle"], beside["one"]]) == ["3", "5"] and beside["after one"]
    assert sorted(beside["two"].split(",")) == ["3", "5"] and not beside["after two"]


def test_a_local_master_has_the_gpus_of_the_driver(found):
    assert [rank[0] for rank in found["driver"]] == ["5", "5"]


def test_tasks_with_gpus_are_refused_by_a_local_master(found):
    says = "spark.task.resource.gpu.amount is set, and Spark starts no such task with a local master (local[3])"
    assert found["local tasks"].startswith(says)


def gpus(data):
    from torch import distributed

    for _ in data:
        pass
    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, (os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ["LOCAL_RANK"]))
    return gathered


def test_the_task_that_starts_ranks_of_spark_connect_needs_no_gpu(tmp_path, memory):
    settings = {f"spark_{of}_resource_gpu_amount": "1" for of in ("worker", "executor", "task")}
    settings["spark_worker_resource_gpu_discoveryScript"] = discovery(tmp_path)
    with connect_server("local-cluster[2,2,1024]", spark_supplier.jars(), **settings) as server:
        spark = spark_supplier.session(remote=server.remote)
        found = Supplier(2, folder=memory).run(gpus, Rows(spark.range(0, 20, 1, 2), uneven="keep"))
        spark.stop()
    # Both GPUs are for tasks of ranks.
    assert sorted(found[0][0].split(",")) == ["3", "5"]
    assert found == [(found[0][0], rank) for rank in ("0", "1")]
