"""One call from PySpark on YARN: ranks on both nodes, started by Spark and by mpirun."""

import os
import pathlib
import subprocess

import pytest

from hadoop import Hadoop
from places import JAR, ROOT

PYTHON = ROOT / "build" / "wheel-venv" / "bin" / "python"
PROGRAM = pathlib.Path(__file__).with_name("one_call.py")
# What the program prints if two ranks on each node have got each of the 1000 rows once.
ON_BOTH_NODES = f"{[(node, str(local_rank)) for node in Hadoop.NODES for local_rank in range(2)]} 1000 True"
LIMIT_SECONDS = 300

needs_pytorch = pytest.mark.skipif(not PYTHON.exists(), reason="no environment with PyTorch (make package)")


@pytest.mark.long
@needs_pytorch
def test_ranks_on_both_nodes_train(cluster, tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{node} slots=2\n" for node in cluster.NODES))
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    words = [PYTHON, PROGRAM, JAR, cluster.head_address(), 1, "torch", f"mpirun={hosts}"]
    program = subprocess.run(
        # With the settings with which mpirun reaches the nodes.
        cluster.on("head", "exec", *map(str, words)),
        env={**environment, "PYSPARK_PYTHON": str(PYTHON)}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=LIMIT_SECONDS,
    )  # fmt: skip
    for launcher in ("torch", "mpirun"):
        assert f"{launcher}: {ON_BOTH_NODES}" in program.stdout.splitlines(), program.stderr[-3000:]
    for node in cluster.NODES:
        assert list(cluster.memory(node).glob("supply-*")) == []
