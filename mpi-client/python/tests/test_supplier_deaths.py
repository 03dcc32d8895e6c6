"""Whatever is killed during Supplier.run: everything else ends, with one cause, and nothing is left."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from supplier_session import shared_memory

PROGRAM = pathlib.Path(__file__).with_name("supplier_program.py")
LIMIT_SECONDS = 120
LOCAL, CLUSTER = "local[3]", "local-cluster[1,3,1024]"


class Program:
    """A driver whose ranks train."""

    def __init__(self, master, folder, launcher, log):
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), master, folder, launcher],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        ranks: set[str] = set()
        while ranks != {"[rank 0] trains", "[rank 1] trains"}:
            line = self.line()
            if line.endswith("trains"):
                ranks.add(line)

    def line(self):
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the program has ended"
        return line.rstrip("\n")

    def processes(self, argument):
        """The processes that descend from the driver and have this argument."""
        found, parents = [], {self.process.pid}
        for _ in range(5):
            parents |= {int(child) for parent in parents for child in _children(parent)}
        for pid in parents:
            if argument.encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                found.append(pid)
        return found

    def end(self):
        """Its last line."""
        output, _ = self.process.communicate(timeout=LIMIT_SECONDS)
        return output.rstrip("\n").rsplit("\n", 1)[-1]


def _children(pid):
    try:
        return [
            c for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for c in (task / "children").read_text().split()
        ]
    except OSError:
        return []


def _parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture
def start(tmp_path):
    """Starts the program. At the end nothing of it is left."""
    programs = []
    with open(tmp_path / "log", "w") as log, shared_memory() as folder:

        def begin(master, launcher="torch"):
            programs.append(Program(master, folder, launcher, log))
            return programs[-1]

        yield begin
    for program in programs:
        program.process.kill()
        program.process.communicate()


@pytest.mark.long
def test_a_killed_executor(start):
    program = start(CLUSTER)
    (executor,) = program.processes("org.apache.spark.executor.CoarseGrainedExecutorBackend")
    os.kill(executor, signal.SIGKILL)
    said = program.end()
    assert said.startswith(
        "failed: RunError: the ranks have ended with Spark's task that keeps them: ExecutorLostFailure"
    )
    assert "code 137 (on " in said, "Spark's reason, and the host"


@pytest.mark.long
def test_ranks_that_end_with_their_task_before_spark_knows(start):
    """As on a node that is slow, or cut off: the ranks say first that they were stopped."""
    program = start(CLUSTER)
    (executor,) = program.processes("org.apache.spark.executor.CoarseGrainedExecutorBackend")
    (node,) = program.processes("spark_supplier.node.node")
    os.kill(executor, signal.SIGSTOP)
    try:
        os.kill(_parent(node), signal.SIGKILL)
        while not (said := program.line()).startswith("failed: "):
            pass
    finally:
        os.kill(executor, signal.SIGKILL)
    program.end()
    assert said.startswith("failed: RunError: the ranks have ended with Spark's task that keeps them: the process that")


@pytest.mark.long
@pytest.mark.parametrize("launcher", ["torch", "mpirun"])
def test_a_killed_driver(start, launcher):
    program = start(CLUSTER, launcher)
    program.process.kill()
    program.process.communicate(timeout=LIMIT_SECONDS)


@pytest.mark.long
def test_a_killed_jvm_of_the_driver(start):
    program = start(LOCAL)
    (jvm,) = program.processes("org.apache.spark.deploy.SparkSubmit")
    os.kill(jvm, signal.SIGKILL)
    assert program.end().startswith("failed: RunError: ")


@pytest.mark.long
def test_a_killed_node_process(start):
    program = start(LOCAL)
    (node,) = program.processes("spark_supplier.node.node")
    os.kill(node, signal.SIGKILL)
    assert program.end().startswith("failed: RunError: ")


@pytest.mark.long
def test_a_killed_mpirun(start):
    program = start(LOCAL, "mpirun")
    # Its children are the ranks.
    mpirun = next(
        pid for pid in program.processes("spark_supplier.node.mpi_rank") if program.process.pid == _parent(pid)
    )
    os.kill(mpirun, signal.SIGKILL)
    assert program.end() == "failed: RunError: mpirun was killed by SIGKILL"


@pytest.mark.long
@pytest.mark.parametrize("launcher", ["torch", "mpirun"])
def test_an_interrupt(start, launcher):
    program = start(LOCAL, launcher)
    program.process.send_signal(signal.SIGINT)
    assert program.end() == "interrupted"
