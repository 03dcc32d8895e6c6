"""The cells of the matrix (docs/design/packaging.md): `make test-matrix`. Each is a short run with exact counts."""

import re

import pytest

from cell import HERE
from installing import DIGITS, DIGITS_COUNT
from neighbours import NEIGHBOURS

PROGRAMS = HERE / "programs"
# Of programs/: 10,000 rows, and twice the sum of their numbers.
BACK = "rows=10000 sum=99990000"


def rows(check):
    return pytest.mark.parametrize("neighbour", [each for each in NEIGHBOURS if check in each.checks], ids=str)


def require_wheel(neighbour, cell):
    if neighbour.python == "3.9":
        assert "No matching distribution found for spark-supplier" in cell.refuses_wheel()
        pytest.skip("pip refuses the wheel, which needs CPython 3.10")


@rows("dataframe")
def test_dataframe(neighbour, cell):
    require_wheel(neighbour, cell)
    said = cell.use_wheel("env/bin/python", PROGRAMS / "dataframe.py")
    assert f"rows: {BACK}" in said and f"stream: {BACK}" in said


@rows("one_call")
def test_one_call(neighbour, cell):
    of_mpi = bool(neighbour.packages)
    said = cell.use_wheel("env/bin/python", PROGRAMS / "one_call.py", "mpirun" if of_mpi else "torch")
    assert f"rows: {BACK}" in said
    if of_mpi:
        [mpi] = re.findall(r"ranks: rows=10000 mpi=(.*)", said)
        name, _, version = neighbour.name.rpartition(" ")
        assert name in mpi and version in mpi


@rows("lmdb")
def test_lmdb(neighbour, cell):
    """With an MPI or a system, the ranks are a program in C that is compiled there. Otherwise they are supply-cat."""
    if neighbour.packages or neighbour.commands or neighbour.suite:
        counts = re.findall(r"rank \d: (\d+) elements", cell.use_prefix())
    else:
        require_wheel(neighbour, cell)
        run = ["env/bin/supply-run", "--lmdb", DIGITS, "--ranks", 2, "--epochs", 1, "--", "env/bin/supply-cat"]
        counts = re.findall(r"^elements\t(\d+)$", cell.use_wheel(*run, "--count"), re.MULTILINE)
    assert len(counts) == 2 and sum(map(int, counts)) == DIGITS_COUNT
