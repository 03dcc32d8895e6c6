"""The GPUs, limits and settings of executors, in the ranks."""

import json
import os
import pathlib
import resource
import subprocess
import sys

import pytest

from supplier_session import prepare_environment, shared_memory

prepare_environment()
pytest.importorskip("pyspark")

pytestmark = pytest.mark.long
PROGRAM = pathlib.Path(__file__).with_name("gpu_program.py")
LIMIT_SECONDS = 280


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the runs of the program return, or say."""
    discovery = tmp_path_factory.mktemp("gpus") / "discover"
    # The first worker has another one than the second.
    discovery.write_text(
        """#!/bin/sh\nmkdir "$0.first" && gpu=3 || gpu=5\necho '{"name": "gpu", "addresses": ["'$gpu'"]}'\n"""
    )
    discovery.chmod(0o755)
    with shared_memory() as folder:
        done = subprocess.run(
            [sys.executable, PROGRAM, folder, discovery], capture_output=True, text=True, timeout=LIMIT_SECONDS
        )
    assert done.stdout, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


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
