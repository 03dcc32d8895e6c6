"""Supplier.run on YARN, with checkpoints on HDFS: it survives its ranks, a node and its driver."""

import json
import os
import pathlib
import re
import subprocess

import pytest

from hadoop import Hadoop
from places import JAR
from test_one_call import PYTHON, needs_pytorch
from waiting import wait_until

pytestmark = [pytest.mark.long, needs_pytorch]

PROGRAM = pathlib.Path(__file__).with_name("restarting_call.py")
# Of each wait, in seconds. None of them measures: they end what hangs.
PATIENCE = 300


class Program:
    """restarting_call.py on the head, and what it prints."""

    def __init__(self, cluster, output, folder, *faults):
        environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
        command = [PYTHON, PROGRAM, JAR, cluster.head_address(), f"hdfs://{folder}", *faults]
        self.folder = folder
        self._output = output
        with open(output, "w") as file:
            self.process = subprocess.Popen(
                cluster.on("head", "exec", *map(str, command)), env={**environment, "PYSPARK_PYTHON": str(PYTHON)},
                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def said(self):
        return self._output.read_text()

    def wait_for(self, pattern):
        """Returns the match."""

        def found():
            assert self.process.poll() is None, self.said()
            return re.search(pattern, self.said())

        return wait_until(found, PATIENCE)

    def result(self):
        assert self.process.wait(PATIENCE) == 0, self.said()
        return json.loads(self.said().splitlines()[-1])

    def kill(self):
        """With its JVM, which would end the application first."""
        subprocess.run(["pkill", "-KILL", "--parent", str(self.process.pid)], check=True)
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def cluster(nodes_allowed, tmp_path_factory):
    """One of their own: other programs would lose executors and logs with the node that is cut off."""
    cluster = Hadoop(tmp_path_factory.mktemp("hadoop"))
    yield cluster
    cluster.stop()


@pytest.fixture
def start(cluster, tmp_path):
    """Starts programs, whose checkpoints are in one folder. At the end nothing is left of them on the nodes."""
    started = []

    def start(*faults):
        output = tmp_path / f"output-{len(started)}"
        started.append(Program(cluster, output, f"/checkpoints/{tmp_path.name}", *faults))
        return started[-1]

    yield start
    for program in started:
        if program.process.poll() is None:
            program.kill()
    for node in cluster.NODES:
        wait_until(lambda: not list(cluster.memory(node).glob("supply-*")), PATIENCE)
        wait_until(
            lambda: cluster("on", node, "pgrep --full '[s]park_supplier.node'", check=False).returncode == 1, PATIENCE
        )


def test_a_killed_rank_and_a_killed_driver(cluster, start):
    first = start("kill", "save")
    first.wait_for(r"was killed by SIGKILL .*\n.*the ranks are started again \(1 of 3\), from checkpoint 1\n")
    first.wait_for("] saved")
    first.kill()
    # Checkpoints as a driver leaves them that dies while it writes. The oldest one that is there is whole.
    [whole, *_] = cluster("fs", "-ls", "-C", f"{first.folder}/*/complete").stdout.split()
    cut, begun = f"{first.folder}/checkpoint-91", f"{first.folder}/checkpoint-90"
    cluster("fs", "-cp", os.path.dirname(whole), cut)
    cluster("fs", "-truncate", "-w", "10", f"{cut}/rank-1")
    cluster("fs", "-mkdir", begun)
    second = start()
    assert second.result() == {"hosts": ["node-1", "node-1", "node-2", "node-2"], "once": True, "restarts": 0}
    assert re.search(
        rf"skipped as checkpoints: \S*{cut}: rank-1 has 10 of \d+ bytes; \S*{begun}: it was not completed",
        second.said(),
    )


def test_a_node_that_is_cut_off_while_ranks_save(cluster, start):
    program = start("save")
    application = program.wait_for(r"application (\S+)")[1]
    program.wait_for("] saved")
    # YARN could give the program no executor without its application master.
    masters = [
        cluster("on", node, f"pgrep --full '[E]xecutorLauncher.*{application}'", check=False) for node in cluster.NODES
    ]
    [(lost, left)] = [pair for pair, master in zip((cluster.NODES, cluster.NODES[::-1]), masters) if master.returncode]
    cluster.cut(lost)
    try:
        found = program.result()
    finally:
        cluster.cut(lost, off=False)
    # If a checkpoint fails before Spark misses the executor, the next attempt has that node, too.
    assert found.pop("restarts") in (1, 2), program.said()
    assert found == {"hosts": [left, left], "once": True}
