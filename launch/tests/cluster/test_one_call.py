"""One call from PySpark on YARN: ranks on both nodes, started by Spark and by mpirun."""

import os
import pathlib
import subprocess

import pytest

from places import JAR, ROOT

PYTHON = ROOT / "build" / "wheel-venv" / "bin" / "python"
LIMIT_SECONDS = 300


def test_ranks_on_both_nodes_train(cluster, tmp_path):
    if not PYTHON.exists():
        pytest.skip("no environment with PyTorch (make python)")
    hosts = tmp_path / "hosts"
    hosts.write_text("".join(f"{node} slots=2\n" for node in cluster.NODES))
    script = pathlib.Path(__file__).with_name("one_call.py")
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    program = subprocess.run(
        # With the settings with which mpirun reaches the nodes.
        cluster.on("head", "exec", str(PYTHON), str(script), str(JAR), cluster.head_address(), str(hosts)),
        env={**environment, "PYSPARK_PYTHON": str(PYTHON)}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=LIMIT_SECONDS,
    )  # fmt: skip
    places = [(node, str(local_rank)) for node in cluster.NODES for local_rank in range(2)]
    for launcher in ("torch", "mpirun"):
        assert f"{launcher}: {places} 1000 True" in program.stdout.splitlines(), program.stderr[-3000:]
    for node in cluster.NODES:
        assert list(cluster.memory(node).glob("supply-*")) == []
