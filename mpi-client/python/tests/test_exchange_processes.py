"""The exchange between ranks that are processes, over mpi4py and over torch.distributed."""

import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

from ending import end_mpirun
from exchanging import check_all_once
from task import wait_until

NEEDS_MPI = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or shutil.which("mpirun") is None, reason="no mpi4py, or no mpirun"
)
TESTS = pathlib.Path(__file__).parent
LIMIT_SECONDS = 120
# The third rank gets nothing from Spark.
SIZES = [[30, 30, 1], [47], [], [12]]
pytestmark = pytest.mark.slow


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="supply-test-", dir="/dev/shm") as folder:
        yield pathlib.Path(folder)


def program(over, folder, *words):
    return [sys.executable, str(TESTS / "exchange_rank.py"), over, str(folder), *words]


def exchange(over, policy, folder, alone):
    return program(over, folder, "exchange", policy, json.dumps(SIZES), str(alone))


def run_over_mpi(ranks, program):
    root = [] if os.geteuid() else ["--allow-run-as-root"]
    mpirun = subprocess.Popen(["mpirun", "-n", str(ranks), "--oversubscribe", *root, *program])
    try:
        assert mpirun.wait(LIMIT_SECONDS) == 0
    finally:
        end_mpirun(mpirun)


def run_over_torch(ranks, program, inside=None):
    inside = inside or [[]] * ranks
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "WORLD_SIZE": str(ranks)}
    started = {
        subprocess.Popen([*inside[rank], *program], env={**environment, "RANK": str(rank)}) for rank in range(ranks)
    }
    running = set(started)

    def succeeded():
        """A rank that fails ends the wait for the others, too."""
        ended = {process for process in running if process.poll() is not None}
        running.difference_update(ended)
        assert all(process.returncode == 0 for process in ended)
        return not running

    try:
        wait_until("the ranks", succeeded)
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextlib.contextmanager
def namespaces(count):
    """Processes in namespaces of their own stand for nodes: ranks of two of them cannot map each other's memory. Gives
    for each the words in front of a program that runs there.
    """
    holders, words = [], []
    try:
        for _ in range(count):
            holder = subprocess.Popen(
                ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", "echo; exec sleep 600"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            holders.append(holder)
            assert holder.stdout and holder.stderr
            if not holder.stdout.readline():
                pytest.skip(f"no namespaces of processes: {holder.stderr.read().strip()}")
            (child,) = pathlib.Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()
            words.append(["nsenter", "--target", child, "--pid", "--mount"])
        yield words
    finally:
        for holder in holders:
            holder.kill()
            holder.communicate()


# Four ranks on two nodes: one after the other, and in turns.
NODES = pytest.mark.parametrize("node_of", [(0, 0, 1, 1), (0, 1, 0, 1)])


def check_two_levels(folder):
    check_all_once(SIZES, received(folder, 4), epochs=2)
    assert [(folder / f"{rank}.rail").read_text() for rank in range(4)] == ["2"] * 4


@NEEDS_MPI
@NODES
def test_two_levels_over_mpi(folder, node_of):
    with namespaces(2) as words:
        inside = [words[node] for node in node_of]
        choice = "; ".join(f'{rank}) exec {" ".join(at)} "$@";' for rank, at in enumerate(inside))
        shell = ["sh", "-c", f"case $OMPI_COMM_WORLD_RANK in {choice}; esac", "sh"]
        # Open MPI's shared memory would look for the processes of other namespaces.
        over_tcp = ["env", "OMPI_MCA_btl=self,tcp", "OMPI_MCA_btl_tcp_if_include=lo"]
        run_over_mpi(4, [*over_tcp, *shell, *exchange("mpi", "all", folder, -1)])
    check_two_levels(folder)


@NODES
def test_two_levels_over_torch(folder, node_of):
    with namespaces(2) as words:
        run_over_torch(4, exchange("torch", "all", folder, -1), [words[node] for node in node_of])
    check_two_levels(folder)


def received(folder, ranks):
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]


# `alone`: the rank that neither copies into another one's memory nor lets others do so; -1: none.
@NEEDS_MPI
@pytest.mark.parametrize("policy, ranks, alone", [("all", 2, -1), ("all", 3, 1), ("hash", 3, 0), ("balance", 3, -1)])
def test_over_mpi(folder, policy, ranks, alone):
    run_over_mpi(ranks, exchange("mpi", policy, folder, alone))
    check_all_once(SIZES[:ranks], received(folder, ranks), epochs=2)


@pytest.mark.parametrize(
    "policy, ranks, alone", [("hash", 2, -1), ("all", 3, 1), pytest.param("all", 3, 0, marks=pytest.mark.long)]
)
def test_over_torch(folder, policy, ranks, alone):
    run_over_torch(ranks, exchange("torch", policy, folder, alone))
    check_all_once(SIZES[:ranks], received(folder, ranks), epochs=2)


BOTH = pytest.mark.parametrize(
    "over, run", [pytest.param("mpi", run_over_mpi, marks=NEEDS_MPI), ("torch", run_over_torch)]
)


@BOTH
def test_the_next_block_moves_while_the_program_computes(folder, over, run):
    run(2, program(over, folder, "overlap"))
    check_all_once([[40, 40]] * 2, received(folder, 2), epochs=1)


@BOTH
def test_the_interpreter_ends_before_the_exchange(folder, over, run):
    run(2, program(over, folder, "forget"))


@NEEDS_MPI
@pytest.mark.parametrize("when", ["before", "inside", "after"])
def test_mpi_ends_before_the_exchange(folder, when):
    run_over_mpi(2, program("mpi", folder, "finalize", when))
    assert all((folder / f"{rank}.ended").exists() for rank in range(2))


@NEEDS_MPI
@pytest.mark.parametrize("end", ["signal", "limit"])
def test_a_rank_that_does_not_come_over_mpi(folder, end):
    run_over_mpi(2, program("mpi", folder, "missing", end))


def test_a_rank_that_does_not_come_over_torch(folder):
    run_over_torch(2, program("torch", folder, "missing", "limit"))
