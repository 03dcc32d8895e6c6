"""launch/supply-run --serve: a program and the ranks of supply-server, started and ended together."""

import os
import pathlib
import signal
import subprocess
import tempfile

import pytest

from pairs import Pairs
from places import PROGRAMS, ROOT
from waiting import wait_until

SERVER = PROGRAMS / "supply-server"
# It has the package supply.
PYTHON = ROOT / "build" / "wheel-venv" / "bin" / "python"
pytestmark = pytest.mark.skipif(not SERVER.exists(), reason="no supply-server: libsupply was built without MPI")

SPARK_PROGRAM = """
from pyspark.sql import SparkSession
import spark_supplier

spark = SparkSession.builder.master("local[2]").config("spark.jars", spark_supplier.jars()).getOrCreate()
with spark_supplier.offload.MatrixRanks.attach(spark, library="libcolumn_sums.so") as ranks:
    matrix = ranks.matrix(spark.range(5).selectExpr("double(id) as x"), features="x")
    with open("sums", "w") as file:
        print(ranks.call("column_sums", matrix).to_numpy(), file=file)
spark.stop()
"""


@pytest.fixture
def serve(supply_run):
    """program: a script for a shell."""

    def start(program, *options, **environment):
        return supply_run("--serve", *options, "--", "bash", "-c", program, program=(), **environment)

    return start


@pytest.fixture
def noting_server(tmp_path):
    """A supply-server that writes its process number into a file."""
    server = tmp_path / "server"
    server.write_text(f"#!/bin/bash\necho $$ > {tmp_path}/pid.${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}\nexec {SERVER}\n")
    server.chmod(0o755)
    return server


def last_message(run):
    return run.errors[-1].removeprefix("supply-run: ")


def test_the_program_finds_the_ranks(serve, tmp_path):
    found = tmp_path / "found"
    run = serve(f'echo $SUPPLY_RANKS $(grep -c ^/ "$SUPPLY_MAPPED_FILES") > {found}', "--ranks", 3)
    assert run.finish() == 0
    assert run.errors == []
    assert found.read_text().split() == ["3", "3"]


def test_a_program_of_spark(serve, tmp_path):
    if not PYTHON.exists():
        pytest.skip("no environment with the package (make package)")
    include, source = ROOT / "mpi-client/include", ROOT / "mpi-client/examples/column_sums.c"
    library = tmp_path / "libcolumn_sums.so"
    subprocess.run(["mpicc", "-shared", "-fPIC", "-I", include, source, "-o", library], check=True)
    program = tmp_path / "program.py"
    program.write_text(SPARK_PROGRAM)
    words = f"cd {tmp_path} && exec env -u SPARK_HOME PYSPARK_PYTHON={PYTHON} {PYTHON} {program}"
    run = serve(words, "--ranks", 2, SUPPLY_LIBRARIES=str(tmp_path))
    assert run.finish() == 0, run.errors
    assert (tmp_path / "sums").read_text() == "[10.]\n"


def test_the_status_is_that_of_the_program(serve):
    run = serve("exit 7")
    assert run.finish() == 7
    assert last_message(run) == "the program failed (status 7)"


def test_the_program_is_killed(serve):
    run = serve("kill -KILL $$")
    assert run.finish() == 137
    assert last_message(run) == "the program was killed (SIGKILL)"


def test_ranks_that_do_not_start(serve, tmp_path):
    started = tmp_path / "started"
    with tempfile.TemporaryDirectory(prefix="supply-test-", dir="/dev/shm") as folder:
        pairs = Pairs(pathlib.Path(folder, "x" * 100), 2)
        run = serve(f"touch {started}", "--ranks", 2, *pairs.options())
        assert run.finish() == 1
    assert last_message(run).startswith("the ranks failed (status 1): supply-server: "), run.errors
    assert "has more than 107 bytes" in last_message(run)
    assert not started.exists()


@pytest.mark.long
def test_a_rank_that_is_killed_ends_the_program(serve, noting_server, tmp_path):
    run = serve(f"kill -KILL $(cat {tmp_path}/pid.0); exec sleep 1000", "--ranks", 2, SUPPLY_SERVER=str(noting_server))
    assert run.finish() == 137
    assert last_message(run) == "the ranks failed (status 137): a rank was ended by SIGKILL"


def test_a_signal_ends_both_sides(serve, tmp_path):
    started = tmp_path / "started"
    run = serve(f"touch {started}; exec sleep 1000", "--ranks", 2)
    wait_until(started.exists)
    os.kill(run.process.pid, signal.SIGTERM)
    assert run.finish() == 143


@pytest.mark.parametrize(
    "options, message",
    [
        (("--lmdb", "/a"), "unknown argument '--lmdb'"),
        (("--yarn", "1g,1,1", "--hosts", "h", "--mapped-files", "a", "--named-pipes", "b"), "choose one"),
    ],
    ids=str,
)
def test_options_of_the_supplier_are_refused(serve, options, message):
    run = serve("true", *options)
    assert run.finish() == 2
    assert message in run.errors[-1]


def test_a_server_that_is_not_there(serve):
    run = serve("true", SUPPLY_SERVER="/nowhere/supply-server", PATH="/usr/bin:/bin")
    assert run.finish() == 127
    assert "there is no " in run.errors[-1]
