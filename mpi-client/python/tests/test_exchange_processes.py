"""The exchange between ranks that are processes, over mpi4py and over torch.distributed."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from exchanging import check_all_once

TESTS = pathlib.Path(__file__).parent
LIMIT_SECONDS = 120
# The third rank gets nothing from Spark.
SIZES = [[30, 30, 1], [47], []]
NEEDS_MPI = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or shutil.which("mpirun") is None, reason="no mpi4py, or no mpirun"
)
NEEDS_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch")


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="supply-test-", dir="/dev/shm") as folder:
        yield pathlib.Path(folder)


def program(over, policy, folder):
    return [sys.executable, str(TESTS / "exchange_rank.py"), over, policy, json.dumps(SIZES), str(folder)]


def received(folder, ranks):
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]


@NEEDS_MPI
@pytest.mark.parametrize("policy, ranks", [("all", 2), ("all", 3), ("hash", 3), ("balance", 3)])
def test_over_mpi(folder, policy, ranks):
    root = [] if os.geteuid() else ["--allow-run-as-root"]
    mpirun = ["mpirun", "-n", str(ranks), "--oversubscribe", *root]
    subprocess.run([*mpirun, *program("mpi", policy, folder)], check=True, timeout=LIMIT_SECONDS)
    check_all_once(SIZES[:ranks], received(folder, ranks), epochs=2)


@NEEDS_TORCH
@pytest.mark.parametrize("policy, ranks", [("all", 2), ("hash", 2), ("all", 3)])
def test_over_torch(folder, policy, ranks):
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "WORLD_SIZE": str(ranks)}
    started = [
        subprocess.Popen(program("torch", policy, folder), env={**environment, "RANK": str(rank)})
        for rank in range(ranks)
    ]
    try:
        assert [process.wait(LIMIT_SECONDS) for process in started] == [0] * ranks
    finally:
        for process in started:
            process.kill()
    check_all_once(SIZES[:ranks], received(folder, ranks), epochs=2)
