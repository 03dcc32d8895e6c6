"""Matrices and routines on YARN: ranks on both nodes, started by launch/run-ranks and by the program."""

import os
import pathlib
import subprocess

import pytest

from places import JAR, PROGRAMS, ROOT
from test_one_call import LIMIT_SECONDS, PYTHON

SERVER = PROGRAMS / "supply-server"
PROGRAM = pathlib.Path(__file__).with_name("offload.py")

needs_server = pytest.mark.skipif(
    not (PYTHON.exists() and SERVER.exists()),
    reason="no supply-server, or no environment with its package (make package)",
)


def compile_routines(folder):
    folder.mkdir()
    for source in ("mpi-client/examples/column_sums.c", "mpi-client/python/tests/routines.c"):
        library = folder / f"lib{pathlib.Path(source).stem}.so"
        include = ROOT / "mpi-client/include"
        subprocess.run(["mpicc", "-shared", "-fPIC", "-I", include, ROOT / source, "-o", library], check=True)
    return {"SUPPLY_LIBRARIES": str(folder), "SUPPLY_SERVER": str(SERVER)}


@needs_server
@pytest.mark.long
def test_routines_of_ranks_on_both_nodes(cluster, make_run, tmp_path):
    libraries = compile_routines(tmp_path / "libraries")
    run = make_run(2, 2, ring="1MiB", block="256KiB")
    run.start(program=SERVER, **libraries)
    files = {"SUPPLY_MAPPED_FILES": run.mapped_files, "SUPPLY_NAMED_PIPES": run.named_pipes, "SUPPLY_HOSTS": run.hosts}
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    environment |= {**libraries, **{name: str(file) for name, file in files.items()}, "PYSPARK_PYTHON": str(PYTHON)}
    words = [PYTHON, PROGRAM, JAR, cluster.head_address(), "attach", f"start={run.hosts}"]
    program = subprocess.run(
        # With the settings with which mpirun reaches the nodes.
        cluster.on("head", "exec", *map(str, words)),
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_SECONDS,
    )  # fmt: skip
    assert program.stdout.splitlines() == ["attach: True", "start: True"], program.stderr[-3000:]
    # The program has ended the ranks that run-ranks has started.
    assert run.finish()[0] == 0
    for node in cluster.NODES:
        assert [file for file in cluster.memory(node).glob("supply-*") if file != run.pairs] == []
