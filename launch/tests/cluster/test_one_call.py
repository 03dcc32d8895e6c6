"""One call from PySpark on YARN: ranks on both nodes, started by Spark."""

import os
import pathlib
import subprocess

import pytest

from places import JAR, ROOT

PYTHON = ROOT / "build" / "wheel-venv" / "bin" / "python"
LIMIT_SECONDS = 300


def test_ranks_on_both_nodes_train(cluster):
    if not PYTHON.exists():
        pytest.skip("no environment with PyTorch (make python)")
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    program = subprocess.run(
        [PYTHON, pathlib.Path(__file__).with_name("one_call.py"), JAR, cluster.head_address()],
        env={**environment, "PYSPARK_PYTHON": str(PYTHON)}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=LIMIT_SECONDS,
    )  # fmt: skip
    places = [(node, str(local_rank)) for node in cluster.NODES for local_rank in range(2)]
    assert f"one_call: {places} 1000 True" in program.stdout.splitlines(), program.stderr[-3000:]
    for node in cluster.NODES:
        assert list(cluster.memory(node).glob("supply-*")) == []
